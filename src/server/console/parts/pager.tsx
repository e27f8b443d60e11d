/** Leads through the pages of a list, forth and back, without script. */
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { Table, type TableProps } from './parts.tsx';

/** Where in a list a page is, as its URL says. */
interface ListPage {
  /** The cursor that the list is asked with; `undefined` = the first page. */
  readonly after: string | undefined;
  /** The cursors of the pages before, oldest first; not of the first one, which has none. */
  readonly before: readonly string[];
  /** From 1. */
  readonly number: number;
}

/** How many pages can be gone back one by one; beyond it the first page is left. */
const KEPT = 20;
const MAX_NUMBER = 99_999;
/** Cursors have no dot. */
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
  /** What the list is, for screen readers. */
  readonly label: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The cursor of the next page; `undefined` = this is the last one. */
  readonly next: string | undefined;
}

/** Nothing if the list has one page. */
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
            <a
              href={link(
                next,
                after === undefined ? [] : [...before, after],
                Math.min(number + 1, MAX_NUMBER),
              )}
              rel="next"
            >
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

/** One page of a list as a table, and the way to the others. */
export function List<Row>({ page: { items, next }, path, query, ...table }: ListProps<Row>) {
  return (
    <>
      <Table {...table} rows={items} />
      <Pager label={table.label} path={path} query={query} next={next} />
    </>
  );
}
