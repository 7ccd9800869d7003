/**
 * Products that name themselves in their greeting (RFC 5321 §4.2), most specific first: Zimbra and
 * Kerio also run or imitate other servers.
 */
const PRODUCTS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['zimbra', /zimbra/i],
  ['kerio', /kerio/i],
  ['exchange', /microsoft esmtp mail service|outlook\.com/i],
  ['exim', /\bexim\b/i],
  ['postfix', /\bpostfix\b/i],
  ['sendmail', /\bsendmail\b/i],
  ['opensmtpd', /opensmtpd/i],
  ['haraka', /haraka/i],
  ['mdaemon', /mdaemon/i],
  ['mailenable', /mailenable/i],
  ['hmailserver', /hmailserver/i],
  ['smartermail', /smartermail/i],
  ['icewarp', /icewarp|merak/i],
  ['axigen', /axigen/i],
  ['communigate', /communigate/i],
  ['domino', /lotus domino|hcl domino|ibm domino/i],
  ['groupwise', /groupwise/i],
  ['courier', /\bcourier\b/i],
  ['qmail', /\bqmail\b/i],
  ['james', /\bjames smtp\b|apache james/i],
  ['stalwart', /stalwart/i],
  ['maddy', /\bmaddy\b/i],
]

/** Matches if any of them does, so that most greetings cost one match. */
const ANY_PRODUCT = new RegExp(PRODUCTS.map(([, { source }]) => source).join('|'), 'i')

/** Returns the product that a greeting names; null if it names none that is known. */
export function softwareIn(greeting: string): string | null {
  if (!ANY_PRODUCT.test(greeting)) return null
  return PRODUCTS.find(([, pattern]) => pattern.test(greeting))?.[0] ?? null
}
