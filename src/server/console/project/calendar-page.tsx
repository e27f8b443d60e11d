/** Links to the calendar of a project: create, list and revoke. */
import { pathId } from '../../api/shown.ts';
import {
  type CalendarLink,
  calendarLinksFor,
  makeCalendarLinkFor,
  revokeCalendarLinkFor,
} from '../../calendar/links.ts';
import { type ConsolePage, type PageAnswer, type PageRequest, projectPath } from '../page.ts';
import { ChangeForm } from '../parts/fields.tsx';
import { type Column, column, Message, ProjectLink, Table, Text, Time } from '../parts/parts.tsx';
import { shownDate, toSecond } from '../parts/time-scale.ts';

/** Only managers of very many users have more: the API lists all. */
const MAX_LINKS = 1000;
const page = { path: '/projects/{project_id}/calendar', action: 'see-project' } as const;

export const CALENDAR_PAGES: readonly ConsolePage[] = [
  { ...page, method: 'GET', answer: (request) => show(request, undefined) },
  {
    ...page,
    method: 'POST',
    answer: async (request) => {
      const projectId = pathId(request.params, 'project_id');
      const id = request.form.get('revoke');
      if (id !== null) {
        await revokeCalendarLinkFor({ ...request, projectId, id });
        return { redirect: calendarPath(projectId) };
      }
      // Shown only this once.
      return show(request, (await makeCalendarLinkFor({ ...request, projectId })).path);
    },
  },
];

export function calendarPath(projectId: string): string {
  return `${projectPath(projectId)}/calendar`;
}

async function show(request: PageRequest, made: string | undefined): Promise<PageAnswer> {
  const projectId = pathId(request.params, 'project_id');
  const { items: links } = await calendarLinksFor(
    { ...request, projectId },
    { limit: MAX_LINKS, after: undefined },
  );
  const { csrf, caller } = request;
  const action = calendarPath(projectId);
  return {
    title: 'Calendar',
    main: (
      <section>
        <p>
          <ProjectLink id={projectId} />
        </p>
        <p>
          A calendar program can show the leases of this project: pending and active ones, and those that
          ended in the last 30 days. Anyone with the link can read them. A link works for 30 days after you
          last opened this page.
        </p>
        {made !== undefined && (
          <Message kind="done">
            Copy the address of this link now; it is not shown again: <a href={made}>calendar</a>
          </Message>
        )}
        {caller.userId === null ? (
          <p>To make a link, log in as a user: a configured token cannot own one.</p>
        ) : (
          <ChangeForm action={action} csrf={csrf}>
            <button type="submit">Make a link</button>
          </ChangeForm>
        )}
        <Table label="Links" columns={columnsOf(action, csrf)} rows={links} empty="There are no links." />
      </section>
    ),
  };
}

function columnsOf(action: string, csrf: string): readonly Column<CalendarLink>[] {
  return [
    column('Made (UTC)', undefined, ({ madeAt }) => <Time at={toSecond(madeAt)} />),
    column('Owner', undefined, ({ who }) => <Text>{who}</Text>),
    column('Works until (UTC)', undefined, ({ worksUntil }) => <Time at={toSecond(worksUntil)} />),
    column('Revoke', undefined, ({ id, madeAt }) => (
      <ChangeForm action={action} csrf={csrf}>
        <button type="submit" name="revoke" value={String(id)}>
          Revoke<span class="unseen"> the link of {shownDate(toSecond(madeAt))}</span>
        </button>
      </ChangeForm>
    )),
  ];
}
