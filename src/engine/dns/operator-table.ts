import { publicSuffixes } from '../../platform/public-suffixes.ts'
import { type CustomOperator, customOperators } from './custom-operators.ts'
import { OPERATOR_ROWS, PARKED_ROWS } from './operators.ts'

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

/** Who runs the mail of a domain, known by the names of its exchangers. */
export type MxOperator = {
  /** Identifier: a name of the table such as `google`, one of your own, else the registrable domain of the exchanger. */
  readonly name: string
  /** Name for people: `Google`. */
  readonly title: string
  /**
   * What a 2xx to RCPT is worth: `tells` it knows its mailboxes; `accepts-all` it takes everything;
   * `tenant` as each customer set it; `gateway` a filter in front of the customer's server;
   * `parked` it takes everything for domains that are for sale, and nobody reads it.
   */
  readonly truth: 'tells' | 'accepts-all' | 'tenant' | 'gateway' | 'parked'
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
