/**
 * Loads, before any test of `npm run mutation`, what commands load when they need it: otherwise all that a module does
 * while it is loaded would count as done by the one test that happens to need it first, and only that test would judge it.
 */
import '../../filters/external-service-filter.ts';
import '../../filters/lease-dates-filter.ts';
import '../../filters/max-lease-duration-filter.ts';
import '../../filters/max-leases-filter.ts';
import '../../filters/max-reservation-size-filter.ts';
import '../../filters/rules-filter.ts';
import '../../filters/scheduling-policy-filter.ts';
import '../../filters/usage-budget-filter.ts';
import '../../src/rules/index.ts';
