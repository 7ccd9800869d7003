import { isFault } from '../../address/address.ts'
import { dnsWaitMs } from '../../engine/dns-pause.ts'
import type { Engine, ProbeListOptions } from '../../engine/engine.ts'
import { askAgain, type Outcome } from '../../engine/inquiry/again.ts'
import { isBackupOnly } from '../../engine/inquiry/exchangers.ts'
import type { Inquiry } from '../../engine/inquiry/prepare.ts'
import { resultOfFailure } from '../../engine/result/conclude.ts'
import type { Acceptance, RouteWithHost } from '../../probe/plan.ts'
import { isFailure, type Result } from '../../verdict/verdict.ts'
import type { Change } from '../record/recorder.ts'
import type { Claimed } from './claim.ts'
import { farewell } from './farewell.ts'
import type { ProbeWork } from './probe-items.ts'
import type { Slot } from './slots.ts'

/** So often something inside ev may fail over an item before that is its result; after the first time it is asked by itself. */
const FAULTS_MAX = 3

/** Asks one operator about claimed items, and has recorded what becomes of them. */
export async function ask(work: ProbeWork, slot: Slot, claimed: readonly Claimed[]): Promise<void> {
  const { recorder, stopping, slots } = work
  const { operator, egress } = slot
  const items = await inquiriesFor(work, slot, claimed)
  const others = new Set<string>()
  const { drain, signal, done } = farewell(work, new Set(claimed.map(({ list }) => list)))
  const onResult: ProbeListOptions['onResult'] = (inquiry, result, asked) => {
    const item = items.get(inquiry) as Claimed
    // What was cut off is no result, and the item may be another's by now.
    if (item.list.over.aborted || work.lost.aborted) return
    // What was not asked because we stop is no result: the item is asked when the job goes on.
    if (stopping.aborted && result.evidence.answer?.kind === 'silent') return
    const outcome = {
      ...{ result, asked, egress },
      isBackupOnly: isBackupOnly(inquiry.exchangers, result),
    }
    const change = changeFor(work, slot, item, outcome)
    for (const postponed of change.postponed ?? []) others.add(postponed.egress ?? egress)
    // Durable soon, with its group; the next conversation does not wait for it.
    void recorder.add(item.list.id, { ...change, holder: item.holder })
  }
  const onTurnLater: ProbeListOptions['onTurnLater'] = (inquiry, delayMs) => {
    const item = items.get(inquiry) as Claimed
    if (item.list.over.aborted || work.lost.aborted) return
    void recorder.add(item.list.id, {
      postponed: [untilTurn(work, item, delayMs)],
      holder: item.holder,
    })
  }
  try {
    for (const { engine, inquiries } of conversations(items)) {
      const [first] = inquiries
      if (first === undefined) continue
      const how = { egress, signal, drain, onResult, onTurnLater }
      await engine.probe(first.operator, inquiries, how)
    }
  } finally {
    done()
  }
  await recorder.settled()
  others.delete(egress)
  if (others.size > 0) await recorder.flushed()
  for (const other of others) await slots.put({ operator, egress: other })
}

async function inquiriesFor(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly Claimed[],
): Promise<Map<Inquiry, Claimed>> {
  const { clock } = work.database
  const items = new Map<Inquiry, Claimed>()
  for (const item of claimed) {
    const begunAt = clock.ticks()
    try {
      const inquiry = await inquiryFor(work, item)
      if (inquiry !== null) items.set(inquiry, item)
    } catch (error) {
      const result = resultOfFailure(clock, { text: item.text, begunAt }, error)
      const outcome = { result, asked: false, egress: slot.egress }
      const change = changeFor(work, slot, item, outcome)
      void work.recorder.add(item.list.id, { ...change, holder: item.holder })
    }
  }
  return items
}

/** An item as it was filed; one that cannot be taken up, as other rules or lists filed it, is looked at anew. */
async function inquiryFor(work: ProbeWork, item: Claimed): Promise<Inquiry | null> {
  const { recorder, stopping } = work
  const { engine, id, options } = item.list
  const filed = resumed(engine, item)
  if (filed !== null) return filed
  const anew = await engine.routeOne(item.text, { ...options, signal: stopping })
  // The DNS was not heard out because we stop: the item is looked at when the job goes on.
  if (stopping.aborted) return null
  if ('inquiry' in anew) return { ...anew.inquiry, accepted: acceptanceOf(item) }
  const { position, copies, holder } = item
  void recorder.add(id, { results: [{ position, copies, result: anew.result }], holder })
  return null
}

function resumed(engine: Engine, item: Claimed): Inquiry | null {
  const { text, route } = item
  try {
    return engine.resume(text, JSON.parse(route ?? '') as RouteWithHost, acceptanceOf(item))
  } catch {
    return null // An ev of another version filed it.
  }
}

const acceptanceOf = ({ accepted }: Claimed): Acceptance | null =>
  accepted === null ? null : (JSON.parse(accepted) as Acceptance)

type Conversation = { readonly engine: Engine; readonly inquiries: readonly Inquiry[] }

/**
 * Who is asked together. Filed under one operator; but the lists, read again since, may tell several, each with a
 * pace of its own. An item over which something inside ev failed may be what made it fail: it is asked by itself.
 */
function conversations(items: ReadonlyMap<Inquiry, Claimed>): Conversation[] {
  const groups = Map.groupBy(items.keys(), inquiry => {
    const { list, position } = items.get(inquiry) as Claimed
    const isSuspect = list.faults.has(position)
    return isSuspect ? `${list.id} ${position}` : `|${inquiry.operator.name}`
  })
  return [...groups.values()].map(inquiries => {
    const { list } = items.get(inquiries[0] as Inquiry) as Claimed
    return { engine: list.engine, inquiries }
  })
}

/** What becomes of an item: its result, or that it is asked again. */
function changeFor(work: ProbeWork, slot: Slot, item: Claimed, outcome: Outcome): Change {
  const { position, copies, list } = item
  const { engine, wait } = list
  const now = work.database.clock.now()
  const { faultDelayMs, roundMs } = work.timings
  const refusedBy = refusedByOf(item)
  const { tries, egress } = item
  if (isFailure(outcome.result.verdict) && failsAgain(item)) {
    return { postponed: [untilTurn(work, item, faultDelayMs)] }
  }
  const past = { tries, waitedMs: Math.max(0, now - (item.ready_at ?? now)), egress, refusedBy }
  const willing = () => engine.fleet.willing(slot.operator)
  const doubtMs = () => engine.fleet.doubtMs(slot.egress, slot.operator)
  const refusedForMs = () => {
    return engine.fleet.refusedForMs(slot.egress, slot.operator, domainOf(outcome.result))
  }
  const { greylistDelayMs } = work
  const dnsDoubtMs = () => dnsWaitMs(engine.resolverCheck)
  const terms = { wait, greylistDelayMs, willing, doubtMs, dnsDoubtMs, refusedForMs }
  const again = askAgain(outcome, past, terms)
  if (again === null) return { results: [{ position, copies, result: outcome.result }] }
  const { delayMs, ...been } = again
  const dueAt = dueTogether(now, delayMs, roundMs)
  return { postponed: [{ position, dueAt, ...been, accepted: jsonOrNull(been.accepted) }] }
}

const jsonOrNull = (value: unknown) => (value === null ? null : JSON.stringify(value))
const domainOf = ({ evidence: { address } }: Result): string =>
  isFault(address) ? '' : address.domain.ascii

/** Puts an item off as it is: nobody was asked. */
function untilTurn(work: ProbeWork, item: Claimed, delayMs: number) {
  const { position, tries, egress, accepted } = item
  const dueAt = dueTogether(work.database.clock.now(), delayMs, work.timings.roundMs)
  return { position, dueAt, tries, egress, accepted, refusedBy: refusedByOf(item) }
}

const refusedByOf = (item: Claimed): readonly string[] => item.refused_by?.split(' ') ?? []

/** Counts a failure inside ev; false when it is one too many. */
function failsAgain({ list, position }: Claimed): boolean {
  const faults = (list.faults.get(position) ?? 0) + 1
  list.faults.set(position, faults)
  return faults < FAULTS_MAX
}

/** To the full second: what was put off by one conversation comes due together, and shares a connection again. */
const dueTogether = (now: number, delayMs: number, roundMs: number) =>
  delayMs === 0 ? now : Math.ceil((now + delayMs) / roundMs) * roundMs
