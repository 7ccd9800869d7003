import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import freeEmailDomains from 'free-email-domains'
import { REAL_PROVIDERS, RELAYS } from '../../src/engine/address/name-list.ts'
import { MULTI_TLD_PROVIDERS } from '../../src/engine/address/typo.ts'
import { OPERATOR_ROWS } from '../../src/engine/dns/operators.ts'
import { toDomains, withParents } from './names.mjs'
import { namedAnywhere, readJson } from './sources.mjs'

const PROTECTED = new Set([
  ...readFileSync(join(import.meta.dirname, 'protected.txt'), 'utf8')
    .split('\n')
    .filter(line => !line.startsWith('#')),
  ...OPERATOR_ROWS.flatMap(([, , , suffixes]) => suffixes.split(' ')),
  ...MULTI_TLD_PROVIDERS.flatMap(({ name, ending, endings }) =>
    [ending, ...endings].map(each => `${name}.${each}`),
  ),
])

/** Lists of providers. They hold disposable domains too, so each is one vote. */
const PROVIDER_LISTS = [freeEmailDomains, readJson('email-providers', 'all.json')].map(
  names => new Set(toDomains(names)),
)
const countProviderLists = name => PROVIDER_LISTS.filter(names => names.has(name)).length

/** Names that only a service for throw-away mail gives itself. */
const SAYS_SO =
  /te?mp-?e?-?mail|mail-?te?mp|te?mp-?inbox|minutes?-?e?-?mail|trash-?e?-?mail|throw-?away|disposable|burner-?e?-?mail|fake-?e?-?mail|yopp?-?mail|guerr?illa-?mail|mailinator|wegwerf|jetable|temporar/

/**
 * Counts the sources that found by themselves that a domain is disposable, and did not copy it:
 * `mailchecker`; `burner` with both states of the aggregate; what both states of the aggregate have
 * and no older list; or what the archive's successor has and nobody else.
 */
function countWitnesses({ mailchecker, burner, archive, aggregate, aggregateLater }, name) {
  const isAggregated = aggregate.has(name) && aggregateLater.has(name)
  const isNew = isAggregated && !burner.has(name) && !archive.has(name)
  const isAdded = archive.has(name) && !aggregate.has(name) && !aggregateLater.has(name)
  const found = [mailchecker.has(name), burner.has(name) && isAggregated, isNew, isAdded]
  return found.filter(Boolean).length
}

/**
 * Whether as many sources call a domain disposable as lists call it a provider, so that it is
 * listed as neither. One list cannot outvote a known provider, or two lists that agree.
 */
export const isDisputed = (sources, name) =>
  !REAL_PROVIDERS.has(name) &&
  !PROTECTED.has(name) &&
  countWitnesses(sources, name) >= countProviderLists(name)

/**
 * Decides by vote which domains are disposable.
 * - A domain of `community` or `harvest` is: somebody has seen the service.
 * - Else it needs a source that did not copy it (`countWitnesses`). Two are needed where a list of
 *   providers names the domain.
 * - Any source will do for a name that says what it is.
 * - Providers and relays that src/engine/address/name-list.ts names never are. What PROTECTED holds is
 *   only where `community` or `harvest` names it.
 */
export function electDisposable(sources) {
  const { community, harvest } = sources
  const isSeen = name => community.has(name) || harvest.has(name)
  const isElected = name => {
    if (isSeen(name)) return true
    if (countProviderLists(name) > 0) return countWitnesses(sources, name) > 1
    return countWitnesses(sources, name) > 0 || SAYS_SO.test(name)
  }
  const isProtected = name =>
    withParents(name).some(
      part =>
        REAL_PROVIDERS.has(part) || RELAYS.has(part) || (PROTECTED.has(part) && !isSeen(name)),
    )
  const elected = new Set(
    [...namedAnywhere(sources)].filter(name => isElected(name) && !isProtected(name)),
  )
  // A listed domain holds all below it.
  return [...elected].filter(
    name =>
      !withParents(name)
        .slice(1)
        .some(part => elected.has(part)),
  )
}
