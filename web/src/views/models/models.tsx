import { ModelView } from "./model";
import { ModelList } from "./list";
import "./models.css";

/// #/models: all models, and adding; #/models/HASH: one of them.
export function ModelsView({ id }: { id: string }) {
  return id === "" ? <ModelList /> : <ModelView hex={id} />;
}
