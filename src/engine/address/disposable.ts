import { isListed, withParents } from './name-list.ts'
import { REAL_PROVIDERS, RELAYS } from './provider.ts'

/**
 * Domains under which services of throw-away mail run their own mail exchangers, for any number of
 * rotating domains: the services that fakefilter names, and the exchangers that in public surveys of
 * 2026 stood behind hundreds of disposable domains and next to nothing else. Never a host that honest
 * domains share (Google, Cloudflare, a registrar, a forwarder).
 */
const HOST_DOMAINS: ReadonlySet<string> = new Set(
  `mailinator.com guerrillamail.com guerrillamail.org sharklasers.com yopmail.com yopmail.net
  temp-mail.org temp-mail.io tempmail.plus mailto.plus 10minutemail.com 10minutemail.net minuteinbox.com
  maildrop.cc mailsac.com mailnesia.com mailcatch.com dispostable.com getnada.com inboxes.com
  trashmail.com trashmail.de trash-mail.com discard.email spambog.com mohmal.com moakt.com
  emailondeck.com emailfake.com email-fake.com generator.email mail.tm mail.gw 1secmail.com dropmail.me
  10mail.org burnermail.io mytemp.email tempr.email harakirimail.com mintemail.com throwawaymail.com
  tempmailo.com tempmail.ninja tempmailin.com fakemail.net fakeinbox.com spamgourmet.com spam4.me
  grr.la mail7.io inboxkitten.com mailpoof.com muellmail.com wegwerfmail.de byom.de einrot.com
  fakemailgenerator.com armyspy.com smailpro.com etempmail.com internxt-temp.com luxusmail.org
  tmail.link tempinbox.com mytrashmail.com mailexpire.com jetable.org incognitomail.org
  wabblywabble.com wallywatts.com unstablemail.com beavis99.com beavis99.net emlhub.com emlpro.com
  emltmp.com freeml.net yomail.info spymail.one cleantempmail.com gravityengine.cc tinyhost.shop
  email.chatgpt.org.uk papierkorb.me fex.plus tempm.com mail-temp.com edumail.icu kuku.lu
  cryptogmail.com fakermail.com linshiyouxiang.net throwaway.io mail1.io kopeechka.store
  temporary-mail.net wegwerfemailadresse.com temporarymail.com disposablemail.com anonymmail.net
  emailnator.com tmail.gg onetimemail.org nukemail.app`.split(/\s+/),
)

/** Whether a domain, or one that it lies under, hands out throw-away mailboxes; what is allowed wins. */
export function isDisposable(
  domain: string,
  more: ReadonlySet<string>,
  allow: ReadonlySet<string>,
): boolean {
  const names = withParents(domain)
  if (names.some(name => allow.has(name) || REAL_PROVIDERS.has(name))) return false
  return !isRelay(domain) && names.some(name => more.has(name) || isListed('disposable', name))
}

export const isRelay = (domain: string): boolean =>
  withParents(domain).some(name => RELAYS.has(name))

/** Whether a mail exchanger serves throw-away domains and nothing else. */
export const isDisposableHost = (mxHost: string): boolean =>
  withParents(mxHost.toLowerCase().replace(/\.$/, '')).some(name => HOST_DOMAINS.has(name))
