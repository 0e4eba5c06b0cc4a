import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./generated/google/rpc/error_details_pb.js";

/// What a person needs to know of a failed call: what, why, and what to do.
export interface Problem {
  title: string;
  cause: string;
  remedy: string;
  code: string;
}

/// What went wrong with a remedy of its own: a job that failed, a file that cannot be sent.
export class TroubleError extends Error {
  constructor(
    cause: string,
    readonly remedy: string,
    readonly reason = "",
  ) {
    super(cause);
  }
}

const kDefaultRemedies: Partial<Record<Code, string>> = {
  [Code.Unavailable]: "Check that odtd is running (odtctl doctor), then try again.",
  [Code.Unknown]: "Check that odtd is running (odtctl doctor), then try again.",
  [Code.DeadlineExceeded]: "The daemon or the board did not answer in time. Try again.",
  [Code.NotFound]: "It may have been deleted. Go back to the list.",
  [Code.PermissionDenied]:
    "This needs the operator role. Use the daemon's own host, or ask its admin.",
  [Code.Unauthenticated]: "Sign in with a token of this daemon.",
  [Code.FailedPrecondition]: "Look at the state above, then try again when it fits.",
  [Code.Aborted]: "Somebody else changed it first. Look at the new state and try again.",
  [Code.ResourceExhausted]: "Wait for something to finish, or free space.",
  [Code.Unimplemented]: "This daemon is older than the dashboard. Reload the page.",
};

/// Turns any thrown value into a Problem. `title` says what was tried and on what ("Could not
/// identify board m33-1").
export function describeError(error: unknown, title: string): Problem {
  if (error instanceof TroubleError)
    return { title, cause: error.message, remedy: error.remedy, code: error.reason };
  const e = ConnectError.from(error);
  const info = e.findDetails(ErrorInfoSchema)[0];
  const fields = e.findDetails(BadRequestSchema).flatMap((d) => d.fieldViolations);
  const retry = e.findDetails(RetryInfoSchema)[0]?.retryDelay;
  // Where the message has it already it is not said again.
  const details = fields
    .filter((f) => !e.rawMessage.includes(f.description) && !f.description.includes(e.rawMessage))
    .map((f) => `${f.field}: ${f.description}`);
  const unreachable = e.code === Code.Unknown && /fetch|network/i.test(e.rawMessage);
  const cause = unreachable
    ? "The daemon cannot be reached."
    : [e.rawMessage || Code[e.code], ...details].join(" · ");
  const remedy =
    info?.metadata["remedy"] ??
    (retry !== undefined ? `Try again in ${Number(retry.seconds)} s.` : undefined) ??
    (unreachable || error instanceof ConnectError ? kDefaultRemedies[e.code] : undefined) ??
    "Correct it and try again.";
  return { title, cause, remedy, code: info?.reason ?? Code[e.code].toUpperCase() };
}

/// One line for the connection banner.
export function linkErrorText(error: unknown): string {
  const e = ConnectError.from(error);
  if (/fetch|network/i.test(e.rawMessage)) return "no answer from the daemon";
  return e.rawMessage || Code[e.code];
}
