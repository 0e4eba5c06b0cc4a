declare module "worker-chunk:*" {
  const url: string;
  export default url;
}
