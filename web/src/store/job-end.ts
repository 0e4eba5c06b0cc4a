import { toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { TroubleError } from "../api/errors";
import { Job_State, type Job } from "../api/types";
import { jobs } from "./fleet";

const options = { timeoutMs: kCallTimeoutMs };
const kPollMs = 300;

const isOpen = (job: Job): boolean =>
  job.state === Job_State.QUEUED || job.state === Job_State.RUNNING;

/// Waits for a job's end; throws with its reason where it failed.
export async function jobEnd(job: Job): Promise<Job> {
  let last = job;
  while (isOpen(last)) {
    await new Promise((done) => setTimeout(done, kPollMs));
    last = (await clients().job.getJob({ id: job.id }, options)).job ?? last;
    jobs.set(toHex(last.id), last);
  }
  if (last.state === Job_State.SUCCEEDED) return last;
  throw new TroubleError(
    last.reason?.text || last.message || "it ended without a reason",
    last.reason?.remedy || "Correct what it names, then try again.",
    last.reason?.code,
  );
}
