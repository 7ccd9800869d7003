import { orOnAbort } from '../../platform/error.ts'
import { isSpecialUse } from '../../platform/special-use.ts'
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
 * A resolver that gives negative answers (NXDOMAIN and NODATA) only while the check of `inner`
 * passes; else they are a `server` fault. The questions of the check go out beside the first
 * question. Records do not wait for the first check, but are a fault too while `inner` invents
 * answers. Special-use names, which no public DNS answers, are not subject to the check.
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
      if (failure !== null) return notBelieved(failure)
    }
    // While the check is repeated its result decides: its questions went out before this one.
    const before = check.isRunning ? null : check.failure
    const { made } = check
    const answer = await inner.resolve(name, type, signal)
    if ('records' in answer) {
      if (check.failure?.kind === 'invented') return notBelieved(check.failure)
      check.noteRecords()
      return answer
    }
    if (!isReportingAbsence(answer, type)) return answer
    const isDenied = check.isCheckName(plain) && (type === 'MX' || answer.fault === 'no-name')
    if (isDenied && check.failure === null) check.expire()
    const failure = before ?? (await orOnAbort(check.result(), signal, 'aborted' as const))
    if (failure === 'aborted') return ABORTED
    if (failure !== null) return notBelieved(failure)
    // An answer that came beside a check is covered by it.
    if (type === 'MX' && check.made === made) check.noteDomainWithoutMail()
    return answer
  }
  return { resolve: resolve as Resolver['resolve'] }
}

/** NODATA for AAAA, TXT or PTR is common and decides nothing; for MX or A it does. */
const isReportingAbsence = (answer: DnsFailure, type: RecordType) =>
  answer.fault === 'no-name' || (isNegative(answer) && (type === 'MX' || type === 'A'))

const notBelieved = ({ detail }: CheckFailure): DnsFailure => ({ fault: 'server', detail })

const ABORTED: DnsFailure = { fault: 'timeout' }
