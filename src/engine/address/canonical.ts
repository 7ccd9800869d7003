import type { Address } from './address.ts'

/** How a provider reads local parts: which spellings reach the same mailbox. */
type Reading = {
  readonly domains: RegExp
  /** The one domain that stands for all of `domains`, if they share their mailboxes. */
  readonly domain?: string
  /** What begins a tag that the provider drops. */
  readonly tag?: '+' | '-'
  /** Characters that the provider overlooks. */
  readonly ignores?: RegExp
  /** Dots and hyphens are one letter. */
  readonly dotIsHyphen?: true
}

/** Providers that say so in their help pages; all of them ignore case. First match wins. */
const READINGS: readonly Reading[] = [
  { domains: /^(gmail|googlemail)\.com$/, domain: 'gmail.com', tag: '+', ignores: /\./g },
  { domains: /^(outlook|hotmail|live)\.[a-z]{2,3}(\.[a-z]{2})?$|^(msn|passport)\.com$/, tag: '+' },
  { domains: /^(icloud|me|mac)\.com$/, domain: 'icloud.com', tag: '+' },
  {
    domains: /^(proton\.me|protonmail\.(com|ch)|pm\.me)$/,
    domain: 'proton.me',
    tag: '+',
    ignores: /[._-]/g,
  },
  {
    domains:
      /^(yandex\.(ru|com|by|kz|uz|ua|com\.tr|com\.am|co\.il|ee|fr|lt|lv|md|tj|tm|az)|ya\.ru)$/,
    domain: 'yandex.ru',
    tag: '+',
    dotIsHyphen: true,
  },
  { domains: /^yahoo\.[a-z]{2,3}(\.[a-z]{2})?$|^(ymail|rocketmail)\.com$/, tag: '-' },
  { domains: /^fastmail\.([a-z]{2,3}|[a-z]{2,3}\.[a-z]{2})$/, tag: '+' },
  { domains: /^(zoho|zohomail)\.(com|eu|in|com\.au)$/, tag: '+' },
  { domains: /^(mail|bk|inbox|list|internet)\.ru$/, tag: '+' },
  { domains: /^(mailbox\.org|posteo\.(de|net)|runbox\.com|pobox\.com|hey\.com)$/, tag: '+' },
  { domains: /^(gmx\.[a-z]{2,3}|web\.de|mail\.com|(aol|aim)\.com|(qq|163|126)\.com)$/ },
  { domains: /^(tuta\.(com|io)|tutanota\.(com|de)|tutamail\.com|t-online\.de|freenet\.de)$/ },
]

/** Most domains are none of these, and one look tells. */
const ANY_READING = new RegExp(READINGS.map(({ domains }) => domains.source).join('|'))

/** The one address under which the provider delivers all spellings of this one; of unknown providers, the address itself. */
export function canonicalAddress({ local, domain }: Address): string {
  const reading = readingOf(domain.ascii)
  if (reading === undefined || local.startsWith('"')) return `${local}@${domain.ascii}`
  const { tag, ignores, dotIsHyphen } = reading
  const tagAt = tag === undefined ? -1 : local.indexOf(tag, 1)
  const untagged = (tagAt < 0 ? local : local.slice(0, tagAt)).toLowerCase()
  const spelled = ignores === undefined ? untagged : untagged.replace(ignores, '')
  const name = dotIsHyphen ? spelled.replaceAll('.', '-') : spelled
  return `${name || untagged}@${reading.domain ?? domain.ascii}`
}

const readingOf = (name: string) =>
  ANY_READING.test(name) ? READINGS.find(({ domains }) => domains.test(name)) : undefined
