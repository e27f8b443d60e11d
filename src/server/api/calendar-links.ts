/** `/v1/projects/{project_id}/calendar-links`: links to the calendar of a project, for calendar programs. */
import { z } from 'zod';
import {
  type CalendarLink,
  calendarLinksFor,
  makeCalendarLinkFor,
  revokeCalendarLinkFor,
} from '../calendar/links.ts';
import { route } from './route.ts';
import {
  listQuery,
  pageAnswer,
  pageJson,
  pageQueryOf,
  pathId,
  refusedAs,
  timeSchema,
  timeText,
  WITHOUT_LEDGER,
} from './shown.ts';

const PATH = '/v1/projects/{project_id}/calendar-links';

const link = {
  link_id: z.string(),
  owner: z.string().meta({ description: 'Whose it is, for people.' }),
  is_own: z.boolean(),
  made_at: timeSchema,
  works_until: timeSchema.meta({
    description:
      '30 days after its owner was last seen with a right to see the project: a look at this list.',
  }),
};

const shared = { path: PATH, action: 'see-project' } as const;

export const CALENDAR_LINK_ROUTES = [
  route({
    ...shared,
    id: 'listCalendarLinks',
    method: 'GET',
    summary: 'List links to the calendar of a project',
    description:
      "The caller's own, which this renews; for managers of the project and operators all of them. Without their secrets, which nobody knows.",
    query: listQuery({}),
    answers: [pageAnswer(z.strictObject(link), 'CalendarLinks', 'A page of links.'), WITHOUT_LEDGER],
    async answer(request) {
      const projectId = pathId(request.params, 'project_id');
      const page = await calendarLinksFor({ ...request, projectId }, pageQueryOf(request.query));
      return { json: pageJson(page, linkJson) };
    },
  }),
  route({
    ...shared,
    id: 'makeCalendarLink',
    method: 'POST',
    summary: 'Make a link to the calendar of a project',
    description:
      'Whoever has the link can read the leases of the project, without a token. It belongs to the caller, who must be a person.',
    answers: [
      {
        status: 201,
        description: 'The link. Its path is told only now.',
        schema: z.strictObject({
          ...link,
          path: z.string().meta({
            description:
              'At this service: GET answers `text/calendar` without a token, 404 once the link works no longer. It holds a secret.',
          }),
        }),
        name: 'NewCalendarLink',
      },
      WITHOUT_LEDGER,
      refusedAs(422, 'The caller has as many links as there may be, or a token that belongs to no person.'),
    ],
    async answer(request) {
      const projectId = pathId(request.params, 'project_id');
      const { link: made, path } = await makeCalendarLinkFor({ ...request, projectId });
      return { status: 201, json: { ...linkJson(made), path } };
    },
  }),
  route({
    ...shared,
    id: 'revokeCalendarLink',
    method: 'DELETE',
    path: `${PATH}/{link_id}`,
    summary: 'Revoke a link to the calendar of a project',
    description: "One's own; managers of the project and operators also those of others.",
    answers: [
      { status: 204, description: 'It works no longer.' },
      refusedAs(404, "There is no such link, or it is somebody else's; or nothing uses a ledger."),
    ],
    async answer(request) {
      const { params } = request;
      const projectId = pathId(params, 'project_id');
      await revokeCalendarLinkFor({ ...request, projectId, id: params.link_id ?? '' });
      return { status: 204 };
    },
  }),
];

function linkJson({ id, who, isOwn, madeAt, worksUntil }: CalendarLink) {
  return {
    ...{ link_id: String(id), owner: who, is_own: isOwn },
    ...{ made_at: timeText(madeAt), works_until: timeText(worksUntil) },
  };
}
