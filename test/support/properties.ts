/** Every run tries the same samples, so that nothing fails by chance. `PROPERTY_SEED=random`, or a number, tries others. */
import fc from 'fast-check';

const { PROPERTY_SEED: asked = '20261122' } = process.env;

fc.configureGlobal(asked === 'random' ? {} : { seed: Number(asked) });
