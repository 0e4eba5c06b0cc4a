import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { describeError } from "./errors";
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
  it("says that the daemon cannot be reached", () => {
    const p = describeError(new TypeError("Failed to fetch"), "Could not identify board m33-1");
    expect(p.cause).toBe("The daemon cannot be reached.");
    expect(p.remedy).toContain("odtctl doctor");
  });
});
