import { allow, BaseFilter } from 'blazar-enforcement';
import { z } from 'zod';

/** Allows everything: the smallest filter, to copy as a starting point. */
export class NoOpFilter extends BaseFilter {
  static options = z.object({
    no_op_note: z.string().default('').meta({ description: 'Does nothing. Your own options go here.' }),
  });

  checkCreate(_context, _lease) {
    return allow(); // or reject('why'), or allow({ ...lease, name: 'another name' })
  }

  checkUpdate(_context, _currentLease, _newLease) {
    return allow();
  }

  onEnd(_context, _lease) {}
}
