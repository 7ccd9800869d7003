/** One mechanism of an SPF record (RFC 7208 §4.6.1), such as `-ip4:192.0.2.0/24`. */
export type Mechanism = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral'
  readonly name: 'all' | 'include' | 'a' | 'mx' | 'ptr' | 'ip4' | 'ip6' | 'exists'
  /** What stands behind the colon, with its macros; null where nothing does. */
  readonly value: string | null
  /** Bits that count of an IPv4 and of an IPv6 address; null: all. */
  readonly prefix4: number | null
  readonly prefix6: number | null
}

export type SpfRecord = {
  readonly mechanisms: readonly Mechanism[]
  readonly redirect: string | null
}

/** Whether a TXT record is one of SPF. */
export const isSpf = (text: string): boolean => /^v=spf1( |$)/i.test(text)

/** Reads a record whole, as a mistake anywhere in it makes it void (§4.6); a mistake is told as text. */
export function parseSpf(text: string): SpfRecord | string {
  const mechanisms: Mechanism[] = []
  const names = new Map<string, string>()
  for (const term of text.split(/ +/).slice(1)) {
    const [, modifier, value = ''] = /^([a-z][a-z0-9_.-]*)=(.*)$/i.exec(term) ?? []
    if (modifier !== undefined) {
      // §6: modifiers that nobody knows say nothing.
      if (!/^(redirect|exp)$/i.test(modifier)) continue
      if (names.has(modifier.toLowerCase())) return `“${modifier}” stands twice`
      if (!isDomainSpec(value)) return `“${term}” names no domain`
      names.set(modifier.toLowerCase(), value)
    } else if (term !== '') {
      const mechanism = parseMechanism(term)
      if (mechanism === null) return `“${term}” is no term of SPF`
      mechanisms.push(mechanism)
    }
  }
  return { mechanisms, redirect: names.get('redirect') ?? null }
}

const RESULTS = { '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' } as const

/** What stands behind the name of each mechanism. */
const FORMS: Readonly<Record<Mechanism['name'], RegExp>> = {
  all: /^$/,
  include: /^:(?<value>[^/]\S*)$/,
  exists: /^:(?<value>[^/]\S*)$/,
  ptr: /^(:(?<value>[^/]\S*))?$/,
  a: /^(:(?<value>[^/]\S*?))?(\/(?<four>\d{1,2}))?(\/\/(?<six>\d{1,3}))?$/,
  mx: /^(:(?<value>[^/]\S*?))?(\/(?<four>\d{1,2}))?(\/\/(?<six>\d{1,3}))?$/,
  ip4: /^:(?<value>[\d.]+)(\/(?<four>\d{1,2}))?$/,
  ip6: /^:(?<value>[0-9a-f:.]+)(\/(?<six>\d{1,3}))?$/i,
}

function parseMechanism(term: string): Mechanism | null {
  const [, sign = '+', name = '', rest = ''] = /^([-+~?])?([a-z0-9]+)(.*)$/i.exec(term) ?? []
  const known = (Object.keys(FORMS) as Mechanism['name'][]).find(one => one === name.toLowerCase())
  const found = known === undefined ? null : FORMS[known].exec(rest)
  if (known === undefined || found === null) return null
  const { value = null, four = null, six = null } = found.groups ?? {}
  if (Number(four) > 32 || Number(six) > 128) return null
  if (value !== null && !known.startsWith('ip') && !isDomainSpec(value)) return null
  return {
    result: RESULTS[sign as keyof typeof RESULTS],
    name: known,
    value,
    prefix4: four === null ? null : Number(four),
    prefix6: six === null ? null : Number(six),
  }
}

/** §7.1: visible characters that end with a macro or, behind a dot, a label that may stand at the top. */
const isDomainSpec = (text: string) =>
  /^[!-~]*(%\{[^}]*\}|\.(?=[a-z0-9-]*[a-z-])[a-z0-9]([a-z0-9-]*[a-z0-9])?\.?)$/i.test(text)
