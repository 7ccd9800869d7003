import { publicSuffixes } from '../../platform/domain-names.ts'
import { EvError } from '../../platform/error.ts'
import { type MxOperator, OPERATOR_ROWS, PARKED_ROWS } from './operators.ts'

/** The configuration of an operator; null keeps the built-in value. */
export type CustomOperator = {
  /** Lower-case suffixes of the host names of its exchangers. */
  readonly hosts: readonly string[]
  readonly title: MxOperator['title'] | null
  readonly truth: MxOperator['truth'] | null
}

/** Builds the table of configured operators. Throws EvError('bad_config') on an invalid entry. */
function createCustomTable(config: Readonly<Record<string, CustomOperator>>): MxOperatorTable {
  const byName = new Map<string, MxOperator>()
  const bySuffix = new Map<string, MxOperator>()
  for (const [name, { hosts, title, truth }] of Object.entries(config)) {
    const known = TABLE.byName.get(name) ?? { title: name, truth: 'tells' }
    const operator = { name, title: title ?? known.title, truth: truth ?? known.truth }
    byName.set(name, Object.freeze(operator))
    for (const suffix of suffixesOf(name, hosts)) {
      const other = bySuffix.get(suffix)
      if (other !== undefined && other.name !== name)
        throw duplicateSuffix(suffix, other.name, name)
      bySuffix.set(suffix, operator)
    }
  }
  return { byName, bySuffix }
}

/**
 * Returns a function from name to title: as configured, else of the built-in table, else the name.
 */
export function titleParser(
  config: Readonly<Record<string, Pick<CustomOperator, 'title'>>>,
): (name: string) => string {
  const custom = new Map(Object.entries(config))
  return name => custom.get(name)?.title ?? TABLE.byName.get(name)?.title ?? name
}

/**
 * Returns the host suffixes of an entry. Without hosts, its name must be a known operator or a
 * domain.
 */
function suffixesOf(name: string, hosts: readonly string[]): readonly string[] {
  if (hosts.length > 0 || TABLE.byName.has(name)) return hosts
  const domain = name.toLowerCase()
  const owner = operatorBySuffix(TABLE, domain)
  if (owner !== undefined) throw unknown(name, `Its exchangers belong to "${owner.name}"`)
  if (/^[^.]+(\.[^.]+)+$/.test(domain)) return [domain]
  const similar = nearest(name)
  throw unknown(
    name,
    similar === null ? 'This is not a known operator' : `Did you mean "${similar}"`,
  )
}

const unknown = (name: string, what: string) =>
  new EvError(
    'bad_config',
    `"operators" has an entry "${name}". ${what}${what.startsWith('Did') ? '?' : '.'} ` +
      'For an operator that ev does not know, list the host suffixes of its exchangers: "hosts": ["mx.example.com"].',
  )

const duplicateSuffix = (suffix: string, one: string, other: string) =>
  new EvError(
    'bad_config',
    `"operators" assigns the hosts ${suffix} to "${one}" and to "${other}". Assign them to one of the two.`,
  )

/** Names below this similarity are unrelated. */
const SIMILARITY_MIN = 0.7

/**
 * Returns the known operator with the most similar name or title; null if none is similar enough.
 */
function nearest(name: string): string | null {
  const [best] = [...TABLE.byName.values()]
    .map(known => ({
      name: known.name,
      similarity: Math.max(similarity(name, known.name), similarity(name, known.title)),
    }))
    .toSorted((a, b) => b.similarity - a.similarity)
  return best === undefined || best.similarity < SIMILARITY_MIN ? null : best.name
}

/** Returns the Dice coefficient of the letter pairs of two names, from 0 to 1. */
function similarity(one: string, other: string): number {
  const [a, b] = [pairsOf(one), pairsOf(other)]
  return (2 * [...a].filter(pair => b.has(pair)).length) / (a.size + b.size || 1)
}

function pairsOf(name: string): Set<string> {
  const letters = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return new Set(Array.from({ length: letters.length - 1 }, (_, n) => letters.slice(n, n + 2)))
}

/** Operators by name, and by the host suffixes of their exchangers. */
type MxOperatorTable = {
  readonly byName: ReadonlyMap<string, MxOperator>
  readonly bySuffix: ReadonlyMap<string, MxOperator>
}

/** Returns the operator with the longest suffix that matches `host`, in lower case. */
function operatorBySuffix({ bySuffix }: MxOperatorTable, host: string): MxOperator | undefined {
  if (bySuffix.size === 0) return undefined
  for (let suffix = host; suffix !== ''; suffix = afterDot(suffix)) {
    const known = bySuffix.get(suffix)
    if (known) return known
  }
  return undefined
}

const afterDot = (name: string) => (name.includes('.') ? name.slice(name.indexOf('.') + 1) : '')

/** The table of built-in operators. */
const TABLE: MxOperatorTable = readTable()

function readTable(): MxOperatorTable {
  const byName = new Map<string, MxOperator>()
  const bySuffix = new Map<string, MxOperator>()
  for (const [name, title, truth, suffixes] of [...OPERATOR_ROWS, ...PARKED_ROWS]) {
    const operator = Object.freeze({ name, title, truth })
    byName.set(name, operator)
    for (const suffix of suffixes.split(' ')) bySuffix.set(suffix, operator)
  }
  return { byName, bySuffix }
}

export type MxOperatorReader = {
  /**
   * Returns the operator of the exchanger `host`: by the longest suffix of a configured operator,
   * else of a built-in one, else by its registrable domain.
   */
  of(host: string): MxOperator
  /** Whether the built-in table or the configuration defines `truth` for this operator. */
  isKnown(name: string): boolean
}

/**
 * Creates a reader over the built-in and the configured operators. Throws EvError('bad_config') on
 * an invalid entry.
 */
export function createMxOperatorReader(
  config: Readonly<Record<string, CustomOperator>> = {},
): MxOperatorReader {
  const custom = createCustomTable(config)
  const withTruth = new Set(Object.keys(config).filter(name => config[name]?.truth != null))
  return {
    of(host) {
      const name = host.trim().replace(/\.$/, '').toLowerCase()
      const configured = operatorBySuffix(custom, name)
      if (configured !== undefined) return configured
      const known = operatorBySuffix(TABLE, name)
      return known === undefined ? byDomain(name) : (custom.byName.get(known.name) ?? known)
    },
    isKnown: name => TABLE.byName.has(name) || withTruth.has(name),
  }
}

function byDomain(host: string): MxOperator {
  const domain = publicSuffixes().getDomain(host, { allowPrivateDomains: false }) ?? host
  return { name: domain, title: domain, truth: 'tells' }
}
