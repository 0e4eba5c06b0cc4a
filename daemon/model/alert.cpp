#include "model/alert.h"

namespace odt::model {

const std::array<AlertRuleInfo, kAlertKinds> kAlertRules = {{
    {AlertKind::kOffline, "offline", "BOARD_OFFLINE", "s", 5, 7 * 86'400, 60,
     AlertSeverity::kCritical, "A board has been away for the threshold."},
    {AlertKind::kStuck, "stuck", "RUN_STUCK", "s", 5, 7 * 86'400, 120, AlertSeverity::kCritical,
     "A running run made no progress for the threshold, or for three of its epochs."},
    {AlertKind::kAccuracyDrop, "accuracy_drop", "ACCURACY_DROP", "ppm", 1, 1'000'000, 50'000,
     AlertSeverity::kWarning,
     "Held-out accuracy of an epoch is under the run's best by the threshold; without classes: "
     "the held-out loss is over the lowest by that share."},
    {AlertKind::kDeadLayer, "dead_layer", "DEAD_LAYER", "epochs", 1, 1000, 2,
     AlertSeverity::kWarning,
     "The board reports a layer that passes no gradient or has over 90 % dead units, in so many "
     "epochs in a row."},
    {AlertKind::kSaturation, "saturation", "WEIGHTS_SATURATED", "ppm", 1, 1'000'000, 50'000,
     AlertSeverity::kWarning,
     "So many of a layer's weights are at the end of their range after an epoch."},
    {AlertKind::kCrcRate, "crc_rate", "LINK_ERRORS", "ppm", 1, 1'000'000, 10'000,
     AlertSeverity::kWarning,
     "So many of the frames of a minute came with a wrong checksum, and at least five."},
    {AlertKind::kDisk, "disk", "DISK_LOW", "MB", 1, 1 << 24, 1024, AlertSeverity::kCritical,
     "Less is free under the data directory, or the store is full."},
    {AlertKind::kFirmwareSkew, "firmware_skew", "FIRMWARE_SKEW", "", 0, 0, 0,
     AlertSeverity::kWarning,
     "A board's firmware is not that of most boards of its type, or has other training rules than "
     "odtd."},
}};

const AlertRuleInfo* alert_rule_info(AlertKind rule) {
  for (const AlertRuleInfo& info : kAlertRules)
    if (info.rule == rule) return &info;
  return nullptr;
}

}  // namespace odt::model
