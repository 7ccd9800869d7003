import type {
  DnsAnswer,
  DnsFault,
  RecordOf,
  RecordType,
  Resolver,
} from '../../src/engine/dns/resolver.ts'

/**
 * The records of a name. An omitted type is `no-data`; a fault instead of a list is the answer for
 * that type, instead of the entry for every type. `never` does not answer until the caller aborts.
 */
export type ZoneEntry =
  | Fault
  | {
      readonly MX?: readonly (readonly [preference: number, host: string])[] | Fault
      readonly A?: readonly string[] | Fault
      readonly AAAA?: readonly string[] | Fault
      readonly TXT?: readonly string[] | Fault
      readonly PTR?: readonly string[] | Fault
    }
type Fault = DnsFault | 'never'

export type Zone = Resolver & {
  /** The queries, in order: `MX a.test`. */
  readonly asked: string[]
  /** Replaces the records of a name; null removes it. */
  set(name: string, entry: ZoneEntry | null): void
}

/**
 * A small DNS:
 * `zone({ 'a.test': { MX: [[10, 'mx.a.test']], A: ['192.0.2.1'] }, 'b.test': 'server' })`.
 */
export function zone(records: Readonly<Record<string, ZoneEntry>> = {}): Zone {
  const entries = new Map(Object.entries(records).map(([name, entry]) => [plain(name), entry]))
  const asked: string[] = []
  return {
    asked,
    set(name, entry) {
      if (entry === null) entries.delete(plain(name))
      else entries.set(plain(name), entry)
    },
    async resolve<T extends RecordType>(
      name: string,
      type: T,
      signal?: AbortSignal,
    ): Promise<DnsAnswer<T>> {
      asked.push(`${type} ${plain(name)}`)
      const found = lookUp(entries, plain(name), type)
      if (found === 'never') await abortOf(signal)
      if (signal?.aborted || found === 'never') return { fault: 'timeout' }
      if (typeof found === 'string') return { fault: found }
      return { records: found as readonly unknown[] as readonly RecordOf<T>[] }
    },
  }
}

function lookUp(entries: Map<string, ZoneEntry>, name: string, type: RecordType) {
  const entry = entries.get(name)
  if (entry === undefined) return hasNameBelow(entries, name) ? 'no-data' : 'no-name'
  if (typeof entry === 'string') return entry
  const list = entry[type]
  if (list === undefined || list.length === 0) return 'no-data'
  if (typeof list === 'string') return list
  return list.map(record =>
    typeof record === 'string' ? record : { preference: record[0], host: record[1] },
  )
}

/** RFC 8020: if `mx.a.test` exists, `a.test` exists too, possibly without records. */
const hasNameBelow = (entries: Map<string, ZoneEntry>, name: string) =>
  [...entries.keys()].some(known => known.endsWith(`.${name}`))

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')

const abortOf = (signal: AbortSignal | undefined) =>
  new Promise<void>(resolve => {
    if (signal?.aborted) resolve()
    signal?.addEventListener('abort', () => resolve(), { once: true })
  })
