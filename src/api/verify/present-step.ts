import type { Step } from '../../engine/progress/step.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import type { StepBody } from '../schemas/step.ts'

/** A step as the API tells it; this file alone knows the names of its fields. */
export function presentStep(step: Step): StepBody {
  switch (step.kind) {
    case 'syntax': {
      const { ok, address, suggestion, text } = step
      return { step: 'syntax', ok, address, did_you_mean: suggestion, text }
    }
    case 'domain': {
      const { ok, route, hosts, operator, text } = step
      return { step: 'domain', ok, kind: route, hosts: [...hosts], operator, text }
    }
    case 'server': {
      const { host, ip, ok, text } = step
      return { step: 'server', host, ip, ok, text }
    }
    case 'line':
      return { step: 'line', text: step.text }
    case 'cached':
      return { step: 'cached', checked_at: isoTime(step.checkedAt), text: step.text }
  }
}
