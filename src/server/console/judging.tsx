/** The form that shows how the filters judge a pasted request. */
import type { DecisionRecord, FilterRecord } from '../../decisions/record.ts';
import { Warnings } from './decisions.tsx';
import { OPERATIONS, type Operation } from './judge.ts';
import { Milliseconds, Outcome } from './outcome.tsx';
import { Table } from './table.tsx';
import { Text } from './text.tsx';

/** The form that was sent and its result: a verdict, or why there is none. */
export interface Judging {
  /** HTTP status of the page: 200 for any verdict. */
  readonly status: 200 | 400 | 413 | 503;
  readonly operation: Operation;
  readonly request: string;
  readonly verdict?: DecisionRecord;
  readonly error?: string;
}

/** A request that MaxLeaseDurationFilter judges. */
const EXAMPLE = JSON.stringify(
  {
    context: { user_id: 'alice', project_id: 'climate' },
    lease: {
      name: 'example',
      start_date: '2026-12-01T09:00:00',
      end_date: '2026-12-11T09:00:00',
      reservations: [],
    },
  },
  null,
  2,
);

/** Nothing was sent yet. */
export const NOTHING_JUDGED: Judging = { status: 200, operation: 'create', request: EXAMPLE };

export function JudgeForm({ operation, request, verdict, error }: Judging) {
  return (
    <section aria-labelledby="judge">
      <h2 id="judge">Judge a request</h2>
      <p class="hint" id="judge-hint">
        The JSON body that Blazar sends to /check-create or /check-update. Every filter is asked, even after a
        rejection. This is a test: it is not logged, counted or listed below, but filters do call other
        services. (The end of a lease is a notification, so it cannot be judged.)
      </p>
      {verdict !== undefined && <Verdict {...verdict} />}
      <form method="post" action="/#judge">
        {error !== undefined && (
          <p class="error" role="alert" id="judge-error">
            <b>Not judged:</b> <Text>{error}</Text>
          </p>
        )}
        <label for="operation">Operation</label>
        <select id="operation" name="operation" value={operation}>
          {OPERATIONS.map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
        <label for="request">Request</label>
        <textarea
          id="request"
          name="request"
          rows={14}
          spellcheck={false}
          autocomplete="off"
          required
          aria-describedby={error === undefined ? 'judge-hint' : 'judge-error judge-hint'}
          aria-invalid={error !== undefined}
          // A browser drops the first line break.
          value={`\n${request}`}
        />
        <button type="submit">Judge</button>
      </form>
    </section>
  );
}

function Verdict({ outcome, filter, message, filters, warnings, generation, duration_ms }: DecisionRecord) {
  return (
    <div class={`verdict ${outcome}`}>
      <h3>
        <Outcome outcome={outcome} />
        {filter !== null && (
          <>
            {' '}
            by <Text>{filter}</Text>
          </>
        )}
      </h3>
      {message !== null && (
        <p>
          <Text>{message}</Text>
        </p>
      )}
      <Warnings warnings={warnings} />
      {filters.length > 0 && (
        <Table label="What every filter says" head={['Verdict', 'Filter', 'Message', 'Took']}>
          {filters.map((one) => (
            <FilterRow {...one} />
          ))}
        </Table>
      )}
      <p class="hint">
        Judged by generation {generation} in <Milliseconds value={duration_ms} />.
      </p>
    </div>
  );
}

function FilterRow({ filter, outcome, audit, message, duration_ms }: FilterRecord) {
  return (
    <tr>
      <td>
        <Outcome outcome={outcome} />
      </td>
      <th scope="row">
        <Text>{filter}</Text>
        {audit && <small>audit: tried, not enforced</small>}
      </th>
      <td class="why">{message !== null && <Text>{message}</Text>}</td>
      <td>
        <Milliseconds value={duration_ms} />
      </td>
    </tr>
  );
}
