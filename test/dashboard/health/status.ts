import type { OperatorStatus, OperatorsStatus } from '../../../src/dashboard/health/source.ts'
import type { Block } from '../../../src/engine/rate-control/controller.ts'

/** The status of a normal operator, with overrides. */
export const operatorStatus = (o: Partial<OperatorStatus> = {}): OperatorStatus => ({
  operator: 'mx.test',
  title: 'mx.test',
  egress: 'default',
  othersAsk: false,
  sessions: 0,
  sessionsAllowed: 2,
  sessionsMax: 2,
  sessionsPerSecond: 1,
  sessionsPerSecondMax: 1,
  recent: 0,
  unknownStreakMax: 20,
  pause: null,
  refusal: null,
  ...o,
})

/** A block with this reply. */
export const refusalWith = (text: string, o: Partial<Block> = {}): Block => ({
  since: Date.UTC(2026, 5, 1, 12),
  until: Date.UTC(2026, 5, 1, 12, 30),
  skipped: 0,
  answer: {
    kind: 'blocked',
    why: 'blocklist',
    stage: 'greeting',
    reply: { code: 550, enhanced: '5.7.1', text },
  },
  ...o,
})

export const operatorsOf = (
  shown: readonly OperatorStatus[],
  o: Partial<OperatorsStatus> = {},
): OperatorsStatus => ({
  egresses: [{ name: 'default', closedSince: null, port: 25 }],
  shown,
  left: 0,
  ...o,
})
