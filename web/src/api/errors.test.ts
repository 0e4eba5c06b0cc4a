import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { describeError, TroubleError } from "./errors";
import { BadRequestSchema, ErrorInfoSchema } from "./generated/google/rpc/error_details_pb.js";

describe("describeError", () => {
  it("names cause, field and the daemon's own remedy", () => {
    const e = new ConnectError("epochs is 0", Code.InvalidArgument, undefined, [
      {
        desc: ErrorInfoSchema,
        value: {
          reason: "OUT_OF_RANGE",
          domain: "odt-fleet",
          metadata: { remedy: "Give 1..1000." },
        },
      },
      {
        desc: BadRequestSchema,
        value: { fieldViolations: [{ field: "hyper.epochs", description: "1..1000" }] },
      },
    ]);
    expect(describeError(e, "Could not start the run")).toEqual({
      title: "Could not start the run",
      cause: "epochs is 0 · hyper.epochs: 1..1000",
      remedy: "Give 1..1000.",
      code: "OUT_OF_RANGE",
    });
  });
  it("says once what message and field both say", () => {
    const e = new ConnectError("size: 0 bytes; allowed 1 to 9", Code.InvalidArgument, undefined, [
      {
        desc: BadRequestSchema,
        value: {
          fieldViolations: [{ field: "size", description: "size: 0 bytes; allowed 1 to 9" }],
        },
      },
    ]);
    expect(describeError(e, "t").cause).toBe("size: 0 bytes; allowed 1 to 9");
  });
  it("gives the remedy of a job that failed, not that of a lost daemon", () => {
    const p = describeError(new TroubleError("line 3: 2 cells", "mend line 3", "BAD_CSV"), "t");
    expect(p).toEqual({
      title: "t",
      cause: "line 3: 2 cells",
      remedy: "mend line 3",
      code: "BAD_CSV",
    });
  });
  it("says that the daemon cannot be reached", () => {
    const p = describeError(new TypeError("Failed to fetch"), "Could not identify board m33-1");
    expect(p.cause).toBe("The daemon cannot be reached.");
    expect(p.remedy).toContain("odtctl doctor");
  });
});
