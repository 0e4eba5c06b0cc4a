import { notices } from "../store/notices";

/// What came of a request, and warnings of the daemon: said aloud, and kept until dismissed if they ask
/// for something.
export function Notices() {
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Messages">
      {notices.list.value.map((n) => (
        <div key={n.id} class={`notice notice-${n.kind}`}>
          <div>
            <p class="notice-title">{n.title}</p>
            {n.cause !== "" && <p>{n.cause}</p>}
            {n.remedy !== "" && <p class="quiet">{n.remedy}</p>}
            {n.action !== undefined && (
              <button
                type="button"
                class="small"
                onClick={() => {
                  notices.dismiss(n.id);
                  n.action?.run();
                }}
              >
                {n.action.label}
              </button>
            )}
          </div>
          <button
            type="button"
            class="small"
            aria-label={`Dismiss: ${n.title}`}
            onClick={() => notices.dismiss(n.id)}
          >
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
