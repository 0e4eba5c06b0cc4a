import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { linkLive } from "../../store/link";

export interface ConfirmProps {
  label: string; // of the button
  title: string; // the question
  confirm: string; // the word that does it
  children: ComponentChildren; // what follows from it, and what can be taken back
  onConfirm: () => void;
  disabled?: boolean;
  class?: string;
  hint?: string; // e.g. why it is disabled
  onOpen?: () => void; // e.g. to ask the daemon what it would do
  name?: string; // accessible name where the label alone does not say of what
}

/// A button for what cannot be undone lightly: it asks once.
export function ConfirmButton(props: ConfirmProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class={props.class ?? "danger"}
        disabled={props.disabled === true || !linkLive.value}
        aria-label={props.name}
        title={props.hint}
        onClick={() => {
          props.onOpen?.();
          setOpen(true);
        }}
      >
        {props.label}
      </button>
      {open && <ConfirmDialog {...props} close={() => setOpen(false)} />}
    </>
  );
}

function ConfirmDialog(props: ConfirmProps & { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="sheet confirm" aria-label={props.title} onClose={props.close}>
      <h2>{props.title}</h2>
      <div class="confirm-text">{props.children}</div>
      <form method="dialog" class="row">
        <button type="submit" autofocus>
          Keep as it is
        </button>
        <button
          type="submit"
          class="danger"
          disabled={!linkLive.value}
          onClick={() => props.onConfirm()}
        >
          {props.confirm}
        </button>
      </form>
    </dialog>
  );
}

/// A dialog that is open as long as it is there.
export function Sheet(props: {
  title: string;
  close: () => void;
  class?: string;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class={`sheet ${props.class ?? ""}`}
      aria-label={props.title}
      onClose={props.close}
    >
      <header class="sheet-head">
        <h2>{props.title}</h2>
        <button type="button" class="small" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {props.children}
    </dialog>
  );
}
