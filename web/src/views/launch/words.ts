import { RunEstimate_Basis } from "../../api/types";

const kBasis: Partial<Record<RunEstimate_Basis, string>> = {
  [RunEstimate_Basis.THIS_BOARD]: "measured on this board",
  [RunEstimate_Basis.SAME_CORE]: "measured on a board of its type",
  [RunEstimate_Basis.SCALED]: "scaled from another model",
  [RunEstimate_Basis.PREDICTED]: "predicted from the kernels",
};

/// What an estimate of time stands on.
export const basisWords = (basis: RunEstimate_Basis | undefined): string =>
  (basis === undefined ? undefined : kBasis[basis]) ?? "no measurement yet";
