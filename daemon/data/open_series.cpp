#include "data/open_series.h"

#include <absl/strings/str_cat.h>

#include "data/png_reader.h"
#include "data/series.h"
#include "data/source_parts.h"
#include "data/window.h"

namespace odt::data {
namespace {

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

Result<WindowOptions::Short> parse_short(const std::string& text, WindowOptions::Short own) {
  using Short = WindowOptions::Short;
  if (text.empty()) return own;
  if (text == "refuse") return Short::kRefuse;
  if (text == "pad") return Short::kPad;
  if (text == "drop") return Short::kDrop;
  return bad(absl::StrCat("short recordings '", printable(text, 40), "'; use refuse, pad or drop"));
}

// window_s: seconds where the rate is known.
Status set_lengths(const ImportRequest& r, double rate, WindowOptions& o) {
  if (r.window_steps > 0 && r.window_s > 0)
    return bad("a window in steps and in seconds; give one");
  if (r.stride_steps > 0 && r.stride_s > 0)
    return bad("a stride in steps and in seconds; give one");
  if (r.window_s < 0 || r.stride_s < 0) return bad("window and stride cannot be negative");
  o.length = r.window_steps;
  o.stride = r.stride_steps;
  if (r.window_s > 0) {
    ODT_ASSIGN(o.length, steps_of(r.window_s, rate, "window"));
  }
  if (r.stride_s > 0) {
    ODT_ASSIGN(o.stride, steps_of(r.stride_s, rate, "stride"));
  }
  return absl::OkStatus();
}

Result<std::unique_ptr<Source>> windows(std::unique_ptr<RecordingSource> recordings,
                                        const ImportRequest& r, const std::string& features,
                                        WindowOptions::Short when_short, double own_window_s) {
  WindowOptions o;
  ODT_TRY(set_lengths(r, recordings->sample_rate(), o));
  if (o.length == 0 && own_window_s > 0) {
    ODT_ASSIGN(o.length, steps_of(own_window_s, recordings->sample_rate(), "window"));
  }
  ODT_ASSIGN(o.when_short, parse_short(r.short_recordings, when_short));
  ODT_ASSIGN(o.features, parse_features(r.features.empty() ? features : r.features));
  return open_windows(std::move(recordings), o);
}

// Recordings have no pixels.
Status no_image_steps(const ImportRequest& r, const std::string& format) {
  if (r.resize.empty() && (r.transform.empty() || r.transform == "none")) return absl::OkStatus();
  return bad(absl::StrCat(format, ": ", r.resize.empty() ? "transform" : "resize",
                          " is for images; of recordings, window, stride and features say what a "
                          "sample is"));
}

}  // namespace

Result<std::unique_ptr<Source>> open_wav_rows(const ImportRequest& r, const std::string& path,
                                              const std::string& name) {
  ODT_TRY(no_image_steps(r, "wav"));
  std::unique_ptr<FileSet> files;
  ODT_ASSIGN(files, open_files(path, name));
  std::unique_ptr<RecordingSource> recordings;
  ODT_ASSIGN(recordings,
             open_wav(std::move(files), {r.pattern, r.group_column, r.only}, r.sample_rate));
  return windows(std::move(recordings), r, "spectrogram", WindowOptions::Short::kPad, 0);
}

Result<std::unique_ptr<Source>> open_edge_impulse_rows(const ImportRequest& r,
                                                       const std::string& path,
                                                       const std::string& name) {
  ODT_TRY(no_image_steps(r, "edge-impulse"));
  if (r.sample_rate > 0)
    return bad("edge-impulse: the files tell their own rate; to thin it out use decimate:N");
  std::unique_ptr<FileSet> files;
  ODT_ASSIGN(files, open_files(path, name));
  std::unique_ptr<RecordingSource> recordings;
  ODT_ASSIGN(recordings, open_edge_impulse(std::move(files), {r.pattern, r.group_column, r.only}));
  return windows(std::move(recordings), r, "raw", WindowOptions::Short::kRefuse, 1);
}

Result<std::unique_ptr<Source>> open_png_rows(const ImportRequest& r, const std::string& path,
                                              const std::string& name) {
  std::unique_ptr<FileSet> files;
  ODT_ASSIGN(files, open_files(path, name));
  PngOptions o;
  o.names = {r.pattern, r.group_column, r.only};
  o.channels = r.channels;
  ImageSteps steps;
  ODT_ASSIGN(steps, parse_image_steps(r.transform, r.resize));
  o.resize = steps.resize;
  o.transform = steps.transform;
  o.steps = steps_text(r.transform, r.resize);
  return open_png(std::move(files), o);
}

bool wants_windows(const ImportRequest& r) { return !r.series.empty(); }

Result<std::unique_ptr<Source>> windows_of(std::unique_ptr<Source> table, const ImportRequest& r) {
  if (r.series != "steps" && r.series != "rows")
    return bad(absl::StrCat("series '", printable(r.series, 40),
                            "'; use steps (a row is a time step) or rows (a row is a recording)"));
  std::unique_ptr<RecordingSource> recordings;
  if (r.series == "steps") {
    if (r.group_column.empty())
      return bad("series of steps need the column that names the recording (group)");
    recordings = recordings_of_steps(std::move(table), r.sample_rate);
  } else {
    ODT_ASSIGN(recordings, recordings_of_rows(std::move(table), r.channels == 0 ? 1 : r.channels,
                                              r.sample_rate));
  }
  return windows(std::move(recordings), r, "raw", WindowOptions::Short::kRefuse, 0);
}

}  // namespace odt::data
