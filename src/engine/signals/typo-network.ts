import type { Resolver } from '../dns/resolver.ts'
import type { Signal } from '../verdict/verdict.ts'
import { SIGNAL_SHIFTS } from './signal.ts'

/** Common misspellings of large providers; `listedTypo` recognizes each. */
export const TYPO_DOMAINS = [
  ...['gmial.com', 'gmai.com', 'gmal.com', 'gnail.com', 'gmaill.com', 'gamil.com'],
  ...['hotmial.com', 'hotmai.com', 'hotmal.com', 'hotnail.com', 'hotmaill.com'],
  ...['yaho.com', 'yahooo.com', 'yhoo.com', 'yaoo.com'],
  ...['outlok.com', 'outloo.com', 'outllook.com', 'iclod.com', 'icloudd.com'],
] as const

/** One shared exchanger may be a coincidence, as with a defensive registration. */
export const NETWORK_MIN = 2

/**
 * Whether misspellings of large providers use the same mail exchanger: then their owner collects
 * mail. Misspellings whose lookup fails are not counted.
 */
export async function findNetworkSignals(
  resolver: Resolver,
  domain: string,
  { hosts, signal }: { readonly hosts: readonly string[]; readonly signal: AbortSignal },
): Promise<Signal[]> {
  const own = new Set(hosts)
  const shares = await Promise.all(
    TYPO_DOMAINS.filter(name => name !== domain).map(async name => {
      const answer = await resolver.resolve(name, 'MX', signal)
      const isShared = 'records' in answer && answer.records.some(({ host }) => own.has(host))
      return isShared ? [name] : []
    }),
  )
  const shared = shares.flat()
  if (shared.length < NETWORK_MIN) return []
  const detail = `The mail exchanger also serves misspelled domains: ${shared.join(', ')}.`
  return [{ name: 'typo-network', shift: SIGNAL_SHIFTS.typoNetwork, detail }]
}
