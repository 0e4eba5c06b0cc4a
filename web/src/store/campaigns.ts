// Asking about campaigns and for them.
import { newRequestId, toHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import { lateClients } from "../api/late-clients";
import type { Campaign, CampaignUnit, CreateCampaignResponse } from "../api/types";
import { act } from "./actions";
import { specOf, type CampaignWish } from "./campaign-spec";
import { campaigns } from "./fleet";

const options = { timeoutMs: kCallTimeoutMs };
const kCreateMs = 60_000; // every board is checked
const kPage = 1000;

export const campaignName = (c: Campaign): string => c.spec?.name || toHex(c.id).slice(0, 12);

type Verb = "pause" | "resume" | "cancel" | "retry";
export function changeCampaign(c: Campaign, verb: Verb): Promise<boolean> {
  const name = campaignName(c);
  return act(
    `${verb}-campaign/${toHex(c.id)}`,
    `${verb} campaign ${name}`,
    "",
    async (requestId) => {
      const request = { requestId, id: c.id };
      const { campaign: api } = lateClients();
      const call = {
        pause: () => api.pauseCampaign(request, options),
        resume: () => api.resumeCampaign(request, options),
        cancel: () => api.cancelCampaign(request, options),
        retry: () => api.retryCampaign(request, options),
      };
      const answer = await call[verb]();
      if (answer.campaign !== undefined) campaigns.set(toHex(c.id), answer.campaign);
    },
  );
}

export function deleteCampaign(c: Campaign): Promise<boolean> {
  const name = campaignName(c);
  return act(
    `delete-campaign/${toHex(c.id)}`,
    `delete campaign ${name}`,
    `${name} is forgotten; its runs and weights stay`,
    async (requestId) => {
      await lateClients().campaign.deleteCampaign({ requestId, id: c.id }, options);
      campaigns.delete(toHex(c.id));
    },
  );
}

export async function loadUnits(id: Uint8Array): Promise<CampaignUnit[]> {
  const units: CampaignUnit[] = [];
  let pageToken = "";
  do {
    const page = await lateClients().campaign.listCampaignUnits(
      { campaignId: id, pageSize: kPage, pageToken },
      options,
    );
    units.push(...page.units);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return units;
}

export const loadRounds = async (id: Uint8Array) =>
  (await lateClients().campaign.listCampaignRounds({ campaignId: id }, options)).rounds;
export const loadEvents = async (id: Uint8Array) =>
  (await lateClients().campaign.listCampaignEvents({ campaignId: id }, options)).events;

async function create(
  wish: CampaignWish,
  dryRun: boolean,
): Promise<CreateCampaignResponse | Problem> {
  const title = dryRun ? "This campaign would be refused" : "Could not start the campaign";
  let spec;
  try {
    spec = specOf(wish);
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    return { title, cause, remedy: "Correct it and try again.", code: "BAD_INPUT" };
  }
  try {
    return await lateClients().campaign.createCampaign(
      { requestId: newRequestId(), spec, dryRun },
      { timeoutMs: kCreateMs },
    );
  } catch (error) {
    return describeError(error, title);
  }
}

/// Asks the daemon what would happen on each board; nothing is begun.
export const checkCampaign = (wish: CampaignWish) => create(wish, true);

export async function startCampaign(wish: CampaignWish): Promise<Campaign | Problem> {
  const answer = await create(wish, false);
  if ("remedy" in answer) return answer;
  if (answer.campaign === undefined)
    return describeError(new Error("the daemon answered without a campaign"), "Could not start");
  campaigns.set(toHex(answer.campaign.id), answer.campaign);
  return answer.campaign;
}
