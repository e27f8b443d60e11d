/** Cut off after almost every line, it is still a file of rules. */
export const RULES = `# Rules of the site
rules:
  - name: two-days
    message: At most two days.
    allow: >-
      hours(lease) <= 48.0
      && lease.name != "x"
  - {name: two-hosts, message: Two hosts., allow: 'size(lease, "physical:host") <= 2'}
  - name: named
    match: lease.attributes.?status.orValue("") != "ACTIVE"
    message: Say a name.
    allow: lease.attributes.?name.orValue("").size() > 40
`;
