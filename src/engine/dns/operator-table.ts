import { type MxOperator, OPERATOR_ROWS, PARKED_ROWS } from './operators.ts'
import { EvError } from '../../platform/error.ts'
import { publicSuffixes } from '../../platform/public-suffixes.ts'

/** What you say of an operator; null: as it is without. */
export type CustomOperator = {
  /** Ends of its exchangers' names, in lower case. */
  readonly hosts: readonly string[]
  readonly title: MxOperator['title'] | null
  readonly truth: MxOperator['truth'] | null
}

/** Your own operators, and those of the table of which you say something else. Throws EvError('bad_config'). */
function customOperators(said: Readonly<Record<string, CustomOperator>>): MxOperatorTable {
  const byName = new Map<string, MxOperator>()
  const bySuffix = new Map<string, MxOperator>()
  for (const [name, { hosts, title, truth }] of Object.entries(said)) {
    const known = TABLE.byName.get(name) ?? { title: name, truth: 'tells' }
    const operator = { name, title: title ?? known.title, truth: truth ?? known.truth }
    byName.set(name, Object.freeze(operator))
    for (const suffix of suffixesOf(name, hosts)) {
      const other = bySuffix.get(suffix)
      if (other !== undefined && other.name !== name) throw givenTwice(suffix, other.name, name)
      bySuffix.set(suffix, operator)
    }
  }
  return { byName, bySuffix }
}

/** What people call an operator: as you say, as the table says, else its name. */
export function titleParser(
  said: Readonly<Record<string, Pick<CustomOperator, 'title'>>>,
): (name: string) => string {
  const own = new Map(Object.entries(said))
  return name => own.get(name)?.title ?? TABLE.byName.get(name)?.title ?? name
}

/** Without hosts, a name is one of the table, or it is the domain of the exchangers itself. */
function suffixesOf(name: string, hosts: readonly string[]): readonly string[] {
  if (hosts.length > 0 || TABLE.byName.has(name)) return hosts
  const domain = name.toLowerCase()
  const runBy = operatorBySuffix(TABLE, domain)
  if (runBy !== undefined) throw unknown(name, `Its exchangers belong to "${runBy.name}"`)
  if (/^[^.]+(\.[^.]+)+$/.test(domain)) return [domain]
  const like = nearest(name)
  throw unknown(name, like === null ? 'ev knows no such operator' : `Did you mean "${like}"`)
}

const unknown = (name: string, what: string) =>
  new EvError(
    'bad_config',
    `"operators" names "${name}". ${what}${what.startsWith('Did') ? '?' : '.'} ` +
      'For an operator that ev does not know, name the ends of its exchangers’ names: "hosts": ["mx.example.com"].',
  )

const givenTwice = (suffix: string, one: string, other: string) =>
  new EvError(
    'bad_config',
    `"operators" gives the hosts ${suffix} to "${one}" and to "${other}". Leave them to one.`,
  )

/** Below this two names have little to do with one another. */
const LIKENESS_MIN = 0.7

/** The known operator whose name or title is most like this one. */
function nearest(name: string): string | null {
  const [best] = [...TABLE.byName.values()]
    .map(known => ({
      name: known.name,
      similarity: Math.max(similarity(name, known.name), similarity(name, known.title)),
    }))
    .toSorted((a, b) => b.similarity - a.similarity)
  return best === undefined || best.similarity < LIKENESS_MIN ? null : best.name
}

/** From 0 to 1, by the pairs of letters that both have. */
function similarity(one: string, other: string): number {
  const [a, b] = [pairsOf(one), pairsOf(other)]
  return (2 * [...a].filter(pair => b.has(pair)).length) / (a.size + b.size || 1)
}

function pairsOf(name: string): Set<string> {
  const letters = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return new Set(Array.from({ length: letters.length - 1 }, (_, n) => letters.slice(n, n + 2)))
}

/** Operators by their names, and by the ends of their exchangers' names. */
export type MxOperatorTable = {
  readonly byName: ReadonlyMap<string, MxOperator>
  readonly bySuffix: ReadonlyMap<string, MxOperator>
}

/** The operator with the longest suffix that `host`, in lower case, ends in. */
export function operatorBySuffix(
  { bySuffix }: MxOperatorTable,
  host: string,
): MxOperator | undefined {
  for (let suffix = host; suffix !== ''; suffix = afterDot(suffix)) {
    const known = bySuffix.get(suffix)
    if (known) return known
  }
  return undefined
}

const afterDot = (name: string) => (name.includes('.') ? name.slice(name.indexOf('.') + 1) : '')

/** The operators that ev knows by itself. */
export const TABLE: MxOperatorTable = readTable()

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
  /** The operator of the exchanger `host`: by the longest suffix of your own, else of the table, else by its registrable domain. */
  of(host: string): MxOperator
  /** Whether the table or you say what a 2xx is worth there; else it is only the domain of somebody's own server. */
  isKnown(name: string): boolean
}

/** A reader over the built-in table and what you say of operators by name. Throws EvError('bad_config') where that cannot be. */
export function createMxOperatorReader(
  said: Readonly<Record<string, CustomOperator>> = {},
): MxOperatorReader {
  const own = customOperators(said)
  const vouched = new Set(Object.keys(said).filter(name => said[name]?.truth != null))
  return {
    of(host) {
      const name = host.trim().replace(/\.$/, '').toLowerCase()
      const ofOwn = operatorBySuffix(own, name)
      if (ofOwn !== undefined) return ofOwn
      const known = operatorBySuffix(TABLE, name)
      return known === undefined ? byDomain(name) : (own.byName.get(known.name) ?? known)
    },
    isKnown: name => TABLE.byName.has(name) || vouched.has(name),
  }
}

function byDomain(host: string): MxOperator {
  const domain = publicSuffixes().getDomain(host, { allowPrivateDomains: false }) ?? host
  return { name: domain, title: domain, truth: 'tells' }
}
