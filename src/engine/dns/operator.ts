import { publicSuffixes } from '../../platform/public-suffixes.ts'
import { type CustomOperator, customOperators } from './custom-operators.ts'
import { operatorBySuffix, TABLE } from './operator-table.ts'

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
