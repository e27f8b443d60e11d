/** Sources of the protocol. The pages are this package's; a test follows the anchors. */
export const SOURCE = {
  blazarDocs: 'Blazar docs, "Usage Enforcement", ExternalServiceFilter',
  blazarContext: 'Blazar, blazar/enforcement/enforcement.py, format_context',
  blazarUpdate: 'Blazar, blazar/manager/service.py, update_lease',
  blazarCreate: 'Blazar, blazar/manager/service.py, create_lease',
  endpoints: 'docs/reference/protocol.md#endpoints',
  requests: 'docs/reference/protocol.md#requests',
  unsaid: 'docs/reference/protocol.md#what-the-documentation-does-not-say',
  duties: 'docs/policy-service-author.md#what-you-have-to-do',
  keepInMind: 'docs/policy-service-author.md#what-to-keep-in-mind',
  filter: 'docs/policy-service-author.md#what-the-filter-makes-of-your-answer',
  clientErrors: 'RFC 9110, 15.5 and 15.6',
  noContent: 'RFC 9110, 8.6 and 15.3.5; RFC 9112, 6.1',
  persistence: 'RFC 9112, 9.3 and 9.6',
} as const;
