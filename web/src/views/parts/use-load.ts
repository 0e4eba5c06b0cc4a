import { useEffect, useRef, useState } from "preact/hooks";
import { describeError, type Problem } from "../../api/errors";
import { linkLive } from "../../store/link";

export interface Loaded<T> {
  value: T | null; // the last that came, also after a later failure
  problem: Problem | null;
  loading: boolean;
  reload: () => void;
}

/// Asks the daemon when `key` changes, when reload() is called and when the connection is back. `what` completes
/// "Could not …". A key of "" asks nothing.
export function useLoad<T>(key: string, what: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | null; problem: Problem | null }>({
    key,
    value: null,
    problem: null,
  });
  const [busy, setBusy] = useState(false);
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const live = linkLive.value;
  useEffect(() => {
    if (key === "" || !live) return;
    let current = true;
    setBusy(true);
    latest
      .current()
      .then((value) => current && setState({ key, value, problem: null }))
      .catch((error: unknown) => {
        if (!current) return;
        const problem = describeError(error, `Could not ${what}`);
        setState((old) => ({ key, value: old.key === key ? old.value : null, problem }));
      })
      .finally(() => current && setBusy(false));
    return () => {
      current = false;
    };
  }, [key, turn, live]);
  const fits = state.key === key;
  return {
    value: fits ? state.value : null,
    problem: fits ? state.problem : null,
    loading: busy,
    reload: () => setTurn((n) => n + 1),
  };
}
