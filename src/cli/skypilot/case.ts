/** What a case of `skypilot test` says. */
import { z } from 'zod';
import { isMapping, type Mapping } from '../../yaml/tree.ts';
import { expectedText } from '../cases/expected.ts';

const mapping = z.custom<Mapping>(isMapping, 'expected a mapping');
const text = (what: string) => z.string(`expected ${what}`).min(1, `expected ${what}`);

const userSchema = z.union([
  text('id:name').transform((written) => {
    const [id = '', ...name] = written.split(':');
    return { id, name: name.length === 0 ? id : name.join(':') };
  }),
  z.strictObject({ id: text('an id'), name: text('a name') }),
]);

const requestSchema = z.strictObject({
  name: text('the name of a request, such as launch').optional(),
  cluster_name: text('a name').optional(),
  idle_minutes: z.int('expected a whole number of minutes').optional(),
  down: z.boolean('expected true or false').optional(),
  dry_run: z.boolean('expected true or false').optional(),
  client_side: z.boolean('expected true or false').optional(),
  user: userSchema.optional(),
  workspace: text('a name').optional(),
  client_version: text('a version in quotes, such as "0.13.0"').optional(),
  client_api_version: z.int('expected a whole number').optional(),
});

const ANSWERS = ['allowed', 'changed', 'unchanged', 'rejected'] as const;

const expectationSchema = z.union([
  z.enum(ANSWERS, `expected ${ANSWERS.join(', ')}, or a mapping`).transform((answer) => ({ answer })),
  z
    .strictObject({
      answer: z.enum(ANSWERS, `expected one of ${ANSWERS.join(', ')}`).optional(),
      rejected: expectedText.optional(),
      rule: z.union([text('the name of a rule'), z.array(text('the name of a rule'))]).optional(),
      task: mapping.optional(),
      task_paths: mapping.optional(),
      skypilot_config: mapping.optional(),
      skypilot_config_paths: mapping.optional(),
      idempotent: z.boolean('expected true or false').optional(),
    })
    .superRefine((written, context) => {
      const { answer, rejected: said, rule, ...others } = written;
      const rejected = said ?? rule;
      if (rejected !== undefined && answer !== undefined && answer !== 'rejected') {
        context.addIssue({ code: 'custom', path: ['answer'], message: 'contradicts rejected' });
      }
      const [result] = Object.keys(others);
      if ((rejected !== undefined || answer === 'rejected') && result !== undefined) {
        context.addIssue({ code: 'custom', path: [result], message: 'a rejected request has no result' });
      }
    }),
]);

export type Expectation = z.infer<typeof expectationSchema>;

export const caseSchema = z
  .strictObject(
    {
      name: text('a name').optional(),
      task: z
        .union([mapping, z.array(mapping).min(1)], 'expected a mapping, or a list of them for a pipeline')
        .optional(),
      task_file: text('a path').optional(),
      skypilot_config: mapping.optional(),
      request: requestSchema.optional(),
      policies: z.array(text('a policy')).min(1, 'expected at least one policy').optional(),
      options: mapping.optional(),
      now: z.iso.datetime({ offset: true, error: 'expected a time such as 2026-11-21T09:00:00Z' }).optional(),
      network: z.boolean('expected true or false').default(false),
      expect: z.union(
        [expectationSchema, z.array(expectationSchema).min(1)],
        `expected ${ANSWERS.join(', ')}, or a mapping`,
      ),
    },
    'expected a mapping with task and expect',
  )
  .superRefine(({ task, task_file }, context) => {
    if ((task === undefined) === (task_file === undefined)) {
      context.addIssue({ code: 'custom', message: 'expected task or task_file' });
    }
  });

export type SkypilotCase = z.infer<typeof caseSchema>;
