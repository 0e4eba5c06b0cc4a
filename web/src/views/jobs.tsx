import { toHex } from "../api/bytes";
import { Job_Kind, Job_State, type Job } from "../api/types";
import { cancelJob, pending } from "../store/actions";
import { serverNowMs } from "../store/clock";
import { datasetName, jobs, modelName } from "../store/fleet";
import { clock, count } from "../store/format";
import { fleetKnown, linkLive } from "../store/link";
import { usToMs } from "../store/numbers";
import { Empty, Hash, Loading, Progress } from "./parts/bits";
import { StateMark } from "./parts/state-mark";
import { href } from "./router";
import { jobKind, jobLook } from "./words";

const kMost = 200;

export function JobsView() {
  const list = jobs.all().sort((a, b) => (toHex(a.id) < toHex(b.id) ? 1 : -1));
  if (list.length === 0) {
    return (
      <>
        <h1 class="sr-only">Jobs</h1>
        {fleetKnown.value ? (
          <Empty title="No jobs" command="odtctl model add model.onnx --trainable 2">
            <p>
              What takes time on the host runs here: compiling models, importing data, training on
              the PC, replays. Jobs go on when this page is closed.
            </p>
          </Empty>
        ) : (
          <Loading />
        )}
      </>
    );
  }
  return (
    <>
      <h1 class="sr-only">Jobs</h1>
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Job</th>
              <th scope="col">Progress</th>
              <th scope="col">What it says</th>
              <th scope="col">Result</th>
              <th scope="col">Created</th>
              <th scope="col">
                <span class="sr-only">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.slice(0, kMost).map((job) => (
              <JobRow key={toHex(job.id)} job={job} />
            ))}
          </tbody>
        </table>
      </div>
      {list.length > kMost && (
        <p class="quiet">
          The newest {kMost} of {count(list.length)}. All: odtctl job list
        </p>
      )}
    </>
  );
}

function JobRow({ job }: { job: Job }) {
  const hex = toHex(job.id);
  const open = job.state === Job_State.QUEUED || job.state === Job_State.RUNNING;
  const failed = job.state === Job_State.FAILED;
  return (
    <tr>
      <td>
        <StateMark look={jobLook(job.state)} />
      </td>
      <th scope="row">
        {jobKind(job.kind)}
        <span class="sub">{hex.slice(0, 13)}</span>
      </th>
      <td data-label="Progress">
        {open ? (
          <span class="run-progress">
            <Progress
              done={job.progressPermille}
              total={1000}
              label={`Progress of ${jobKind(job.kind)}`}
            />
            <span class="quiet">{Math.floor(job.progressPermille / 10)} %</span>
          </span>
        ) : (
          <span class="quiet">–</span>
        )}
      </td>
      <td data-label="Says" class="wrap">
        {failed ? (
          <>
            <span class="tone-bad">{job.reason?.text || job.message}</span>
            <span class="sub wrap">{job.reason?.remedy}</span>
          </>
        ) : (
          job.message
        )}
      </td>
      <td data-label="Result">
        <Result job={job} />
      </td>
      <td class="nowrap" data-label="Created">
        {clock(usToMs(job.meta?.createTimeUs ?? 0n), serverNowMs.value)}
      </td>
      <td>
        {open && (
          <button
            type="button"
            class="small danger"
            disabled={!linkLive.value || pending.value.has(`cancel-job/${hex}`)}
            onClick={() => void cancelJob(job)}
          >
            Cancel
          </button>
        )}
      </td>
    </tr>
  );
}

function Result({ job }: { job: Job }) {
  if (job.resultKey.length === 0) return <span class="quiet">–</span>;
  const hex = toHex(job.resultKey);
  switch (job.kind) {
    case Job_Kind.COMPILE:
      return <a href={href("models")}>model {modelName(job.resultKey)}</a>;
    case Job_Kind.IMPORT:
      return <a href={href("data")}>dataset {datasetName(job.resultKey)}</a>;
    case Job_Kind.REPLAY:
      return <a href={href("run", hex)}>run {hex.slice(0, 13)}</a>;
    default:
      return <Hash value={job.resultKey} label="result" />;
  }
}
