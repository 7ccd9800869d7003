import { EvError } from '../../platform/error.ts'
import { type MxOperator, type MxOperatorTable, operatorBySuffix, TABLE } from './operator-table.ts'

/** What you say of an operator; null: as it is without. */
export type CustomOperator = {
  /** Ends of its exchangers' names, in lower case. */
  readonly hosts: readonly string[]
  readonly title: MxOperator['title'] | null
  readonly truth: MxOperator['truth'] | null
}

/** Your own operators, and those of the table of which you say something else. Throws EvError('bad_config'). */
export function customOperators(said: Readonly<Record<string, CustomOperator>>): MxOperatorTable {
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
