/** What users send to set budgets and to request more. Ids may be `name@domain`. */
import { z } from 'zod';

const date = (what: string) =>
  z.string().meta({
    description: `${what} ISO 8601, to the second; without an offset it means UTC.`,
    examples: ['2026-12-01T00:00:00Z'],
  });
const until = date('End of validity, exclusive.');
const amount = z.union([z.string(), z.number()]).meta({
  description: 'In unit-hours: a decimal number, 0 or more, with up to six decimals.',
  examples: ['1000'],
});
const projectId = z.string().meta({ description: 'The id, or name@domain if Keystone is configured.' });
const userId = (description: string) => z.string().nullable().optional().meta({ description });

export const reasonSchema = z
  .string()
  .meta({ description: 'The reason, for the history.', examples: ['Second half of the grant'] });

export const budgetInput = z.strictObject({
  project_id: projectId,
  user_id: userId('The id, or name@domain. Default: the whole project.'),
  valid_from: date('Start of validity.'),
  valid_until: until,
  amount,
  reason: reasonSchema,
});

export const amendmentInput = z.strictObject({
  amount: amount.optional(),
  valid_until: until.optional(),
  reason: reasonSchema,
});

/** `amount`: the increase of the budget. */
export const requestInput = z.strictObject({
  project_id: projectId,
  user_id: userId(
    'The id, or name@domain, of a user with a budget of their own. Default: the whole project.',
  ),
  amount,
  valid_until: date('The time until which it is needed.'),
  reason: reasonSchema.meta({ description: 'The reason.', examples: ['A workshop'] }),
});

const why = z.string().meta({ description: 'The reason, shown to everyone who can see the request.' });

/** To endorse or withdraw a request, to refuse it, and to grant it. */
export const stepInputs = {
  step: z.strictObject({ reason: why.optional() }),
  refusal: z.strictObject({ reason: why }),
  grant: z.strictObject({
    amount: amount.optional(),
    valid_until: date('Default: as requested.').optional(),
    reason: why,
  }),
};

export type BudgetInput = z.infer<typeof budgetInput>;
export type AmendmentInput = z.infer<typeof amendmentInput>;
export type RequestInput = z.infer<typeof requestInput>;
export type StepInput = Omit<z.infer<typeof stepInputs.grant>, 'reason'> & z.infer<typeof stepInputs.step>;
