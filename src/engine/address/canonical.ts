import type { Address } from './address.ts'

/** The local-part rules of a provider: which spellings reach the same mailbox. */
type LocalPartRules = {
  readonly domains: RegExp
  /** The canonical domain of `domains`, if they share their mailboxes. */
  readonly domain?: string
  /** The character that starts a tag, which the provider ignores. */
  readonly tag?: '+' | '-'
  /** Characters that the provider ignores. */
  readonly ignores?: RegExp
  /** Dots and hyphens are equivalent. */
  readonly dotIsHyphen?: true
}

/** Rules published in the help pages of providers; all of them ignore case. First match wins. */
const PROVIDER_RULES: readonly LocalPartRules[] = [
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

/** One expression for all providers, because most domains match no rule. */
const ANY_PROVIDER = new RegExp(PROVIDER_RULES.map(({ domains }) => domains.source).join('|'))

/** Returns the canonical spelling of the mailbox; the address itself if the provider is unknown. */
export function canonicalAddress({ local, domain }: Address): string {
  const rules = rulesFor(domain.ascii)
  if (rules === undefined || local.startsWith('"')) return `${local}@${domain.ascii}`
  const { tag, ignores, dotIsHyphen } = rules
  const tagAt = tag === undefined ? -1 : local.indexOf(tag, 1)
  const untagged = (tagAt < 0 ? local : local.slice(0, tagAt)).toLowerCase()
  const spelled = ignores === undefined ? untagged : untagged.replace(ignores, '')
  const name = dotIsHyphen ? spelled.replaceAll('.', '-') : spelled
  return `${name || untagged}@${rules.domain ?? domain.ascii}`
}

const rulesFor = (name: string) =>
  ANY_PROVIDER.test(name) ? PROVIDER_RULES.find(({ domains }) => domains.test(name)) : undefined
