/** What a case about a pod says. */
import { z } from 'zod';
import { isMapping, type Mapping } from '../../yaml/tree.ts';
import { expectedText } from '../cases/expected.ts';

const mapping = z.custom<Mapping>(isMapping, 'expected a mapping');
const text = (what: string) => z.string(`expected ${what}`).min(1, `expected ${what}`);
const ANSWERS = ['allowed', 'changed', 'unchanged', 'rejected'] as const;

const expectationSchema = z.union(
  [
    z.enum(ANSWERS, `expected ${ANSWERS.join(', ')}, or a mapping`).transform((answer) => ({ answer })),
    z
      .strictObject(
        {
          answer: z.enum(ANSWERS, `expected one of ${ANSWERS.join(', ')}`).optional(),
          rejected: expectedText.optional(),
          policy: z.union([text('the name of a policy'), z.array(text('the name of a policy'))]).optional(),
          rule: z.union([text('the name of a rule'), z.array(text('the name of a rule'))]).optional(),
          field: text('a field of the spec, such as nodeSelector').optional(),
          warning: expectedText.optional(),
          pod_paths: mapping.optional(),
        },
        'expected a mapping',
      )
      .superRefine(({ answer, rejected, policy, rule, field, pod_paths }, context) => {
        const refused = [rejected, policy, rule, field].some((one) => one !== undefined);
        if (refused && answer !== undefined && answer !== 'rejected') {
          context.addIssue({ code: 'custom', path: ['answer'], message: 'contradicts a rejection' });
        }
        if ((refused || answer === 'rejected') && pod_paths !== undefined) {
          context.addIssue({ code: 'custom', path: ['pod_paths'], message: 'a rejected pod has no result' });
        }
      }),
  ],
  `expected ${ANSWERS.join(', ')}, or a mapping`,
);

export type PodExpectation = z.infer<typeof expectationSchema>;

export const podCaseSchema = z
  .strictObject(
    {
      name: text('a name').optional(),
      /** A pod, or an object with a template of one. Without `kind`: a pod. */
      pod: mapping.optional(),
      pod_file: text('a path').optional(),
      namespace: text('a name').optional(),
      service_account: text('a name').optional(),
      /** Who sends the request: rules may ask for it. Of most pods a controller. */
      user: z
        .union(
          [
            text('a name').transform((name) => ({ name, groups: [] })),
            z.strictObject({ name: text('a name'), groups: z.array(text('a name')).default([]) }),
          ],
          'expected a name, or a mapping with name and groups',
        )
        .optional(),
      now: z.iso.datetime({ offset: true, error: 'expected a time such as 2026-11-21T09:00:00Z' }).optional(),
      /** The pod as it is: then it is an update. */
      current: mapping.optional(),
      /** Instead of those of the configuration: files and folders beside the case. */
      scheduling_policies: z.array(text('a path')).min(1, 'expected at least one path').optional(),
      expect: expectationSchema,
    },
    'expected a mapping with pod and expect',
  )
  .superRefine(({ pod, pod_file, current }, context) => {
    if (current !== undefined && pod === undefined) {
      context.addIssue({ code: 'custom', path: ['current'], message: 'expected pod beside current' });
    }
    if ((pod === undefined) === (pod_file === undefined)) {
      context.addIssue({ code: 'custom', message: 'expected pod or pod_file' });
    }
  });

export type PodCase = z.infer<typeof podCaseSchema>;
