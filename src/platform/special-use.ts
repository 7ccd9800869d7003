/**
 * Names that no public DNS answers: RFC 6761 (test, example, invalid, localhost), RFC 6762 (local),
 * RFC 7686 (onion), RFC 9476 (alt), RFC 8375 (home.arpa), RFC 9665 (service.arpa), RFC 9462
 * (resolver.arpa), internal (ICANN 2024). Not example.com: it stands in DNS and says there that it
 * takes no mail.
 */
const SPECIAL_USE =
  /(?:^|\.)(?:test|example|invalid|localhost|local|onion|alt|internal|(?:home|service|resolver)\.arpa)$/

/** `name` in A-labels, lower case, without the dot of the root. */
export const isSpecialUse = (name: string) => SPECIAL_USE.test(name)
