/** Navigates the pages of a list, back and forth, without script. */
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { Table, type TableProps } from './parts.tsx';

interface ListPage {
  /** The cursor of the page; `undefined` = the first page. */
  readonly after: string | undefined;
  /** Cursors of earlier pages, oldest first; the first page has none. */
  readonly before: readonly string[];
  /** From 1. */
  readonly number: number;
}

/** How many pages back are kept; from older ones, only the first page is reachable. */
const KEPT = 20;
const MAX_NUMBER = 99_999;
/** Separator: cursors have no dot. */
const BETWEEN = '.';

export function listPage(query: URLSearchParams): ListPage {
  const after = query.get('after') || undefined;
  const asked = Number(query.get('page'));
  const number = Number.isInteger(asked) && asked > 1 && asked <= MAX_NUMBER ? asked : 2;
  const before = (query.get('before') ?? '').split(BETWEEN).filter((cursor) => cursor !== '');
  return after === undefined
    ? { after, before: [], number: 1 }
    : { after, before: before.slice(-KEPT), number };
}

interface PagerProps {
  /** A name for the list, for screen readers. */
  readonly label: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The cursor of the next page; `undefined` = this is the last one. */
  readonly next: string | undefined;
}

/** Renders nothing if the list has one page. */
export function Pager({ label, path, query, next }: PagerProps) {
  const { after, before, number } = listPage(query);
  if (number === 1 && next === undefined) {
    return null;
  }
  const link = (cursor: string | undefined, earlier: readonly string[], page: number) => {
    const to = new URLSearchParams(query);
    for (const [name, value] of [
      ['after', cursor],
      ['before', earlier.slice(-KEPT).join(BETWEEN)],
      ['page', page > 1 ? String(page) : ''],
    ] as const) {
      if (value) {
        to.set(name, value);
      } else {
        to.delete(name);
      }
    }
    const text = String(to);
    return text === '' ? path : `${path}?${text}`;
  };
  const canGoBack = number === 2 || before.length > 0;
  const passed = after === undefined ? [] : [...before, after];
  return (
    <nav class="pager" aria-label={`Pages of: ${label}`}>
      <ul>
        {number > 1 && (
          <li>
            <a href={link(undefined, [], 1)}>First page</a>
          </li>
        )}
        {number > 1 && canGoBack && (
          <li>
            <a href={link(before.at(-1), before.slice(0, -1), number - 1)} rel="prev">
              Previous page
            </a>
          </li>
        )}
        <li>Page {number}</li>
        {next !== undefined && (
          <li>
            <a href={link(next, passed, Math.min(number + 1, MAX_NUMBER))} rel="next">
              Next page
            </a>
          </li>
        )}
      </ul>
    </nav>
  );
}

interface ListProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly page: PageOf<Row>;
  readonly path: string;
  readonly query: URLSearchParams;
}

export function List<Row>({ page: { items, next }, path, query, ...table }: ListProps<Row>) {
  return (
    <>
      <Table {...table} rows={items} />
      <Pager label={table.label} path={path} query={query} next={next} />
    </>
  );
}
