import { useEffect, useState } from "preact/hooks";
import type { GetDatasetResponse } from "../../api/types";
import { SamplePicture } from "../../charts/sample";
import { kNone } from "../../store/format";
import { pictureKind, sampleOf } from "../../store/samples";
import { dark } from "../theme";

/// A sample of a dataset by its number (train first), fetched when it is shown.
export function SampleTile(props: {
  datasetHex: string;
  index: number;
  caption: preact.ComponentChildren;
  words: string;
  width?: number;
  labelled?: boolean; // with its class behind the caption
}) {
  const [answer, setAnswer] = useState<GetDatasetResponse | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let current = true;
    setAnswer(null);
    sampleOf(props.datasetHex, props.index)
      .then((a) => current && setAnswer(a))
      .catch(() => current && setFailed(true));
    return () => {
      current = false;
    };
  }, [props.datasetHex, props.index]);
  const sample = answer?.preview?.samples[0];
  const width = props.width ?? 84;
  return (
    <figure class="sample-tile">
      {sample !== undefined && answer?.preview !== undefined ? (
        <SamplePicture
          kind={pictureKind(answer.preview)}
          shape={answer.preview.shape}
          values={sample.values}
          label={props.words}
          dark={dark.value}
          width={width}
        />
      ) : (
        <span class="sample-none" style={{ width: `${width}px`, height: `${width}px` }}>
          {failed ? kNone : ""}
        </span>
      )}
      <figcaption>
        {props.caption}
        {props.labelled === true && sample !== undefined && sample.label !== "" && (
          <> {sample.label}</>
        )}
      </figcaption>
    </figure>
  );
}
