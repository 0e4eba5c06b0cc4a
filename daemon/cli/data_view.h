#pragma once

#include <string>

namespace odt::api::v1 {
class Dataset;
class DatasetPreview;
class DatasetReport;
}  // namespace odt::api::v1

// Datasets for terminals.
namespace odt::cli {

class Context;

// Figures of the dataset, samples of each class in each split, warnings; features of small tables.
void show_dataset(Context& context, const api::v1::Dataset& dataset,
                  const api::v1::DatasetReport& report);

// One sample of a preview: an image in characters, a curve for each channel, or names and values.
std::string sample_text(const api::v1::DatasetPreview& preview, int sample);

}  // namespace odt::cli
