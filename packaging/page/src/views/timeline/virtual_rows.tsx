// A list of rows with a fixed height that draws only the visible ones.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const EXTRA_ROWS = 12;

interface VirtualRowsProps {
  count: number;
  rowHeight: number;
  label: string;
  /** Rows that were inserted at the top since the start, so that the rows on the screen stay where they are. */
  inserted: number;
  /** The row that must be visible; changes only when a person moves the selection. */
  selected: number | null;
  row: (index: number) => ComponentChildren;
  onRange: (first: number, last: number) => void;
}

export function VirtualRows({ count, rowHeight, label, inserted, selected, row, onRange }: VirtualRowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const insertedBefore = useRef(inserted);

  useEffect(() => {
    const element = box.current;
    if (!element) {
      return undefined;
    }
    const observer = new ResizeObserver(() => setHeight(Math.min(element.clientHeight, window.innerHeight)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const shift = inserted - insertedBefore.current;
    insertedBefore.current = inserted;
    if (element && shift > 0 && element.scrollTop > 0) {
      element.scrollTop += shift * rowHeight;
    }
  }, [inserted]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || selected === null) {
      return;
    }
    const start = selected * rowHeight;
    if (start < element.scrollTop) {
      element.scrollTop = start;
    } else if (start + rowHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = start + rowHeight - element.clientHeight;
    }
  }, [selected, rowHeight]);

  const first = Math.max(0, Math.floor(top / rowHeight) - EXTRA_ROWS);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + EXTRA_ROWS);
  useEffect(() => onRange(Math.floor(top / rowHeight), last), [first, last, count]);
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  return (
    <div class="virtual" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)} tabIndex={0} role="region" aria-label={label}>
      <ul class="virtual-rows" style={{ height: `${count * rowHeight}px` }}>
        {indexes.map((index) => (
          <li key={index} class="virtual-row" style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}>
            {row(index)}
          </li>
        ))}
      </ul>
    </div>
  );
}
