import { type BounceProjection, type ListProjection, PROVIDER_LIMITS } from './projection.ts'

/** Returns the JSON form of a projection, for the API and the command line. */
export const presentProjection = (
  { actions, before, after, reports }: ListProjection,
  complaintRate: number | null,
) => ({
  actions: { ...actions },
  projection: {
    before: presentBounces(before),
    after: presentBounces(after),
    reports,
    complaint_rate: complaintRate === null ? null : round(complaintRate),
    limits: {
      ses_bounce_review: PROVIDER_LIMITS.sesBounceReview,
      ses_bounce_pause: PROVIDER_LIMITS.sesBouncePause,
      gmail_complaints: PROVIDER_LIMITS.gmailComplaints,
    },
  },
})

export const presentBounces = ({ addresses, rate, rateMin, rateMax }: BounceProjection) => ({
  addresses,
  bounce_rate: round(rate),
  bounce_rate_min: round(rateMin),
  bounce_rate_max: round(rateMax),
})

/** Four digits: a hundredth of a percent. */
const round = (rate: number) => Number(rate.toFixed(4))
