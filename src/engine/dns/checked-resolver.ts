import { orOnAbort } from '../../platform/abort.ts'
import { isSpecialUse } from '../../platform/domain-names.ts'
import {
  type DnsAnswer,
  type DnsFailure,
  isNegative,
  plainName,
  type RecordType,
  type Resolver,
} from './resolver.ts'
import type { CheckFailure, ResolverCheck } from './resolver-check.ts'

/**
 * A resolver that returns negative answers (NXDOMAIN and NODATA) only while the check of `inner`
 * passes; otherwise they become a `server` fault. The check runs in parallel with the first query.
 * Records do not wait for the first check, but also become a fault while `inner` invents answers.
 * While `inner` answers no query, a failed lookup says so.
 * Special-use names, which the public DNS does not resolve, are exempt from the check.
 */
export function createCheckedResolver(inner: Resolver, check: ResolverCheck): Resolver {
  const resolve = async (
    name: string,
    type: RecordType,
    signal?: AbortSignal,
  ): Promise<DnsAnswer<RecordType>> => {
    const plain = plainName(name)
    if (isSpecialUse(plain)) return inner.resolve(name, type, signal)
    check.startIfDue()
    if (check.failure?.kind === 'invented') {
      const failure = await orOnAbort(check.result(), signal, 'aborted' as const)
      if (failure === 'aborted') return ABORTED
      if (failure !== null) return untrusted(failure)
    }
    // If a check is running, its result applies, because its queries were sent before this one.
    const before = check.isRunning || check.failure?.kind === 'silent' ? null : check.failure
    const { made } = check
    const answer = await inner.resolve(name, type, signal)
    if ('fault' in answer && !isNegative(answer)) {
      if (answer.isOurs !== true && signal?.aborted !== true) check.noteFailedLookup()
      return check.failure?.kind === 'silent' ? untrusted(check.failure) : answer
    }
    check.noteAnswer()
    if ('records' in answer) {
      if (check.failure?.kind === 'invented') return untrusted(check.failure)
      // A server that denies mail of every domain may still know their addresses.
      if (type === 'MX') check.noteRecords()
      return answer
    }
    if (!isReportingAbsence(answer, type)) return answer
    const deniesCheckName =
      check.isCheckName(plain) && (type === 'MX' || answer.fault === 'no-name')
    if (deniesCheckName && check.failure === null) check.expire()
    const failure = before ?? (await orOnAbort(check.result(), signal, 'aborted' as const))
    if (failure === 'aborted') return ABORTED
    if (failure !== null) return untrusted(failure)
    // An answer that arrived during a check is covered by that check.
    if (type === 'MX' && check.made === made) check.noteDomainWithoutMail()
    return answer
  }
  return { resolve: resolve as Resolver['resolve'] }
}

/** NODATA is significant for MX and A only; for AAAA, TXT and PTR it is common. */
const isReportingAbsence = (answer: DnsFailure, type: RecordType) =>
  answer.fault === 'no-name' || (isNegative(answer) && (type === 'MX' || type === 'A'))

const untrusted = ({ detail }: CheckFailure): DnsFailure => ({ fault: 'server', detail })

const ABORTED: DnsFailure = { fault: 'timeout' }
