import { isSpecialUse } from '../base/special-use.ts'
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
 * A resolver whose negative answers (NXDOMAIN and NODATA) are handed out only while the check of
 * `inner` passes; else they are a `server` fault. The questions of the check go out beside the first
 * question. Records never wait for a first check, but are a fault too while `inner` invents answers.
 * The check says nothing of special-use names, which no public DNS answers: they pass without it.
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
      const failure = await unlessAborted(check.result(), signal)
      if (failure === 'aborted') return ABORTED
      if (failure !== null) return notBelieved(failure)
    }
    // A failure of which the check is being repeated may be over: its questions went out before ours.
    const before = check.isRunning ? null : check.failure
    const { made } = check
    const answer = await inner.resolve(name, type, signal)
    if ('records' in answer) {
      if (check.failure?.kind === 'invented') return notBelieved(check.failure)
      check.noteRecords()
      return answer
    }
    if (!isTellingAbsence(answer, type)) return answer
    const isDenied = check.isCheckName(plain) && (type === 'MX' || answer.fault === 'no-name')
    if (isDenied && check.failure === null) check.expire()
    const failure = before ?? (await unlessAborted(check.result(), signal))
    if (failure === 'aborted') return ABORTED
    if (failure !== null) return notBelieved(failure)
    // An answer that came beside a check is covered by it.
    if (type === 'MX' && check.made === made) check.noteDomainWithoutMail()
    return answer
  }
  return { resolve: resolve as Resolver['resolve'] }
}

/** A name without AAAA, TXT or PTR records is common and decides nothing: only its MX and A records do. */
const isTellingAbsence = (answer: DnsFailure, type: RecordType) =>
  answer.fault === 'no-name' || (isNegative(answer) && (type === 'MX' || type === 'A'))

const notBelieved = ({ detail }: CheckFailure): DnsFailure => ({ fault: 'server', detail })

const ABORTED: DnsFailure = { fault: 'timeout' }

function unlessAborted<T>(
  run: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T | 'aborted'> {
  if (signal === undefined) return run
  if (signal.aborted) return Promise.resolve('aborted')
  const { promise, resolve, reject } = Promise.withResolvers<T | 'aborted'>()
  const abort = () => resolve('aborted')
  signal.addEventListener('abort', abort, { once: true })
  run.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  return promise
}
