import { HOUR, MINUTE } from '../../base/clock.ts'
import { countedIp } from '../../base/ip.ts'
import type { Bucket } from '../../store/limits.ts'
import type { Caller } from '../context.ts'
import type { ServiceSettings } from '../service.ts'
import { singleBucket } from './headers.ts'

/** What a request is counted as, beside being a request of its key. */
export type Counts = 'single' | 'bulk' | null

/** Which limit a bucket stands for. */
export type LimitKind = 'ip:single' | 'ip:bulk' | 'key:plan' | 'key:own'

export type KindBucket = Bucket & { readonly kind: LimitKind }

/** All limits that a request must pass; the first one that is used up is told. */
export function bucketsOf(
  { key, plan }: Caller,
  { ip, counts, settings }: { ip: string; counts: Counts; settings: ServiceSettings },
): KindBucket[] {
  const buckets: KindBucket[] = []
  const { singlePerMinute, bulkPerHour: limit } = settings.ipLimits
  if (counts === 'single') buckets.push(singleBucket(singlePerMinute, ip))
  if (counts === 'bulk') {
    buckets.push({ kind: 'ip:bulk', key: `ip:bulk:${countedIp(ip)}`, limit, perMs: HOUR })
  }
  const { requests, perMs } = plan
  buckets.push({ kind: 'key:plan', key: `key:plan:${key.id}`, limit: requests, perMs })
  if (key.rateLimitPerMinute !== null) {
    const own = { limit: key.rateLimitPerMinute, perMs: MINUTE }
    buckets.push({ kind: 'key:own', key: `key:own:${key.id}`, ...own })
  }
  return buckets
}

/** Which limit it was, for people. */
export function nameOf({ kind, limit, perMs }: KindBucket): string {
  if (kind === 'ip:single') return `${limit} single verifications a minute from one IP address`
  if (kind === 'ip:bulk') return `${limit} lists an hour from one IP address`
  if (kind === 'key:own') return `${limit} requests a minute with this key`
  const span =
    perMs === MINUTE ? 'a minute' : perMs === 1_000 ? 'a second' : `in ${perMs / 1_000} s`
  return `${limit} requests ${span} in your plan`
}
