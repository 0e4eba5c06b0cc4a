import { useEffect, useRef, useState } from "preact/hooks";
import { describeError, type Problem } from "../../api/errors";
import { linkLive } from "../../store/link";

const kPaceMs = 1000; // what changes all the time is asked for once a second

export interface Loaded<T> {
  value: T | null; // the last that came, also after a later failure
  problem: Problem | null;
  loading: boolean;
  reload: () => void;
}

/// Asks the daemon when `key` changes, when reload() is called and when the connection is back; the value of another
/// key is forgotten at once. A change of `version` asks again, paced, and keeps what is shown meanwhile. `what`
/// completes "Could not …". A key of "" asks nothing.
export function useLoad<T>(
  key: string,
  what: string,
  load: () => Promise<T>,
  version: string | number | bigint = 0,
): Loaded<T> {
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
  usePacedChange(version, () => setTurn((n) => n + 1));
  const fits = state.key === key;
  return {
    value: fits ? state.value : null,
    problem: fits ? state.problem : null,
    loading: busy,
    reload: () => setTurn((n) => n + 1),
  };
}

/// Calls `changed` after `version` has changed, at most once in kPaceMs, and once after the last change.
function usePacedChange(version: string | number | bigint, changed: () => void): void {
  const first = useRef(true);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const latest = useRef(changed);
  latest.current = changed;
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    timer.current ??= setTimeout(() => {
      timer.current = null;
      latest.current();
    }, kPaceMs);
  }, [version]);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
    },
    [],
  );
}
