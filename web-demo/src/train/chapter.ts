export const chapter = { mount() {} };
