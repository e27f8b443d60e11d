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
  owner: z.string().meta({ description: 'The owner, as a label.' }),
  is_own: z.boolean(),
  made_at: timeSchema,
  works_until: timeSchema.meta({
    description: '30 days after the owner last read this list with the right to see the project.',
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
      "The caller's own links, which this request renews; for managers of the project and operators, all links. Secrets are not included: the service does not store them.",
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
      'Anyone with the link can read the leases of the project without a token. It belongs to the caller, who must be a user.',
    answers: [
      {
        status: 201,
        description: 'The link. Its path is shown only once.',
        schema: z.strictObject({
          ...link,
          path: z.string().meta({
            description:
              'A path of this service: GET returns `text/calendar` without a token, or 404 once the link is no longer valid. It contains a secret.',
          }),
        }),
        name: 'NewCalendarLink',
      },
      WITHOUT_LEDGER,
      refusedAs(422, 'The caller has the maximum number of links, or its token belongs to no user.'),
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
    description: "The caller's own link; managers of the project and operators may revoke any.",
    answers: [
      { status: 204, description: 'The link is revoked.' },
      refusedAs(404, 'No such link, or it belongs to another user, or no enabled filter uses a ledger.'),
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
    link_id: String(id),
    owner: who,
    is_own: isOwn,
    made_at: timeText(madeAt),
    works_until: timeText(worksUntil),
  };
}
