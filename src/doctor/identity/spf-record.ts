import { parseIp } from './reverse-name.ts'

/** A directive of an SPF record (RFC 7208 §4.6.1). */
export type Directive = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral'
  readonly mechanism: 'all' | 'include' | 'a' | 'mx' | 'ptr' | 'ip4' | 'ip6' | 'exists'
  /** A domain with macros, or the network of `ip4` and `ip6`; empty if omitted. */
  readonly target: string
  /** Lengths of the network prefixes, in bits. */
  readonly bits4: number
  readonly bits6: number
}

type SpfRecord = {
  readonly directives: readonly Directive[]
  /** The domain of the modifier `redirect`, with macros; null if there is none. */
  readonly redirect: string | null
}

const RESULTS = { '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' } as const
type Qualifier = keyof typeof RESULTS

const MACRO = '%(?:\\{[slodiphv](?:[1-9]\\d*)?r?[-.+,/_=]*\\}|[%_-])'
const MACRO_STRING = new RegExp(`^(?:${MACRO}|[!-$&-~])*$`, 'i')
const ENDS_WITH_MACRO = new RegExp(`${MACRO}$`, 'i')
/** A last label with at least one character that is not a digit. */
const ENDS_WITH_LABEL = /\.(?!\d+\.?$)[a-z\d](?:[a-z\d-]*[a-z\d])?\.?$/i
const BITS = '(?:/(0|[1-9]\\d?))?'
const DUAL_BITS = new RegExp(`^(.*?)${BITS}(?://(0|[1-9]\\d{0,2}))?$`)
const MODIFIER = /^([a-z][\w.-]*)=(.*)$/i
const DIRECTIVE = /^([-+~?]?)(all|include|a|mx|ptr|ip4|ip6|exists)(?:(:)(.*)|(\/.*))?$/i

export const isSpfRecord = (text: string): boolean => /^v=spf1(?: |$)/i.test(text)

/** Parses a record. Returns the first term that is invalid as `{ invalid }`. */
export function parseSpfRecord(text: string): SpfRecord | { readonly invalid: string } {
  const directives: Directive[] = []
  const unique = new Map<string, string>()
  for (const term of text.split(' ').slice(1)) {
    if (term === '') continue
    const [, name, value] = MODIFIER.exec(term) ?? []
    if (name !== undefined && value !== undefined) {
      const modifier = name.toLowerCase()
      const isKnown = modifier === 'redirect' || modifier === 'exp'
      if (isKnown ? unique.has(modifier) || !isDomainSpec(value) : !MACRO_STRING.test(value)) {
        return { invalid: term }
      }
      unique.set(modifier, value)
      continue
    }
    const directive = parseDirective(term)
    if (directive === null) return { invalid: term }
    directives.push(directive)
  }
  return { directives, redirect: unique.get('redirect') ?? null }
}

function parseDirective(term: string): Directive | null {
  const [, qualifier = '', name, colon, afterColon, slash] = DIRECTIVE.exec(term) ?? []
  if (name === undefined) return null
  const mechanism = name.toLowerCase() as Directive['mechanism']
  const result = RESULTS[(qualifier || '+') as Qualifier]
  const argument = afterColon ?? slash ?? ''
  const parsed = parseArgument(mechanism, argument, colon !== undefined)
  return parsed && { result, mechanism, ...parsed }
}

/** Parses the text behind the name of a mechanism (RFC 7208 §5). Returns null if it is invalid. */
function parseArgument(
  mechanism: Directive['mechanism'],
  text: string,
  hasColon: boolean,
): Pick<Directive, 'target' | 'bits4' | 'bits6'> | null {
  const whole = { target: text, bits4: 32, bits6: 128 }
  switch (mechanism) {
    case 'all':
      return text === '' && !hasColon ? whole : null
    case 'include':
    case 'exists':
      return hasColon && isDomainSpec(text) ? whole : null
    case 'ptr':
      return hasColon ? (isDomainSpec(text) ? whole : null) : text === '' ? whole : null
    case 'ip4':
    case 'ip6':
      return hasColon ? parseNetwork(mechanism, text) : null
    case 'a':
    case 'mx': {
      const [, target = '', bits4 = '32', bits6 = '128'] = DUAL_BITS.exec(text) ?? []
      if (hasColon ? !isDomainSpec(target) : target !== '') return null
      return withBits(target, Number(bits4), Number(bits6))
    }
    default:
      return mechanism satisfies never
  }
}

function parseNetwork(mechanism: 'ip4' | 'ip6', text: string) {
  const [, target = '', bits] = /^([\da-f:.]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(text) ?? []
  if (parseIp(target) === null || target.includes(':') !== (mechanism === 'ip6')) return null
  return mechanism === 'ip4'
    ? withBits(target, Number(bits ?? 32), 128)
    : withBits(target, 32, Number(bits ?? 128))
}

const withBits = (target: string, bits4: number, bits6: number) =>
  bits4 > 32 || bits6 > 128 ? null : { target, bits4, bits6 }

/** Whether a text is a `domain-spec` (RFC 7208 §7.1). */
const isDomainSpec = (text: string) =>
  MACRO_STRING.test(text) && (ENDS_WITH_LABEL.test(text) || ENDS_WITH_MACRO.test(text))

/** The values of macro letters (RFC 7208 §7.2). */
type MacroValues = Readonly<Record<'s' | 'l' | 'o' | 'd' | 'i' | 'p' | 'h' | 'v', string>>

const EXPANSION = /%(?:\{([slodiphv])(\d*)(r?)([-.+,/_=]*)\}|([%_-]))/gi
const LITERALS: Readonly<Record<string, string>> = { '%': '%', _: ' ', '-': '%20' }

/** Whether the name of the client, which takes DNS lookups, is among the macros. */
export const hasPtrMacro = (text: string): boolean => /%\{p/i.test(text.replaceAll('%%', ''))

/**
 * Expands macros (RFC 7208 §7.3) to a domain name. Removes leading labels if it is longer than 253
 * characters.
 */
export function expandMacros(text: string, values: MacroValues): string {
  let name = text.replace(EXPANSION, (_, letter, digits, reverse, delimiters, literal) => {
    if (literal !== undefined) return LITERALS[literal] ?? ''
    const value = values[letter.toLowerCase() as keyof MacroValues]
    const parts = value.split(new RegExp(`[${delimiters.replace(/[-/]/g, '\\$&') || '.'}]`))
    const ordered = reverse === '' ? parts : parts.toReversed()
    const kept = (digits === '' ? ordered : ordered.slice(-Number(digits))).join('.')
    return letter === letter.toLowerCase() ? kept : escapeUrl(kept)
  })
  name = name.replace(/\.$/, '')
  while (name.length > NAME_MAX && name.includes('.')) name = name.slice(name.indexOf('.') + 1)
  return name
}

const NAME_MAX = 253

/** Escapes all but the unreserved characters of RFC 3986 §2.3. */
const escapeUrl = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
